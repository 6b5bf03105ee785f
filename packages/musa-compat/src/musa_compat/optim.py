# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.optim`: fused optimizers. Adam and AdamW are torch's with `fused=True`; torch has no LAMB."""

import torch

from .deprecation import warn_once


class FusedAdam(torch.optim.Adam):
    """`torch.optim.Adam(fused=True)`, with all its arguments."""

    def __init__(self, params, *args, fused=True, **kwargs):
        _refuse_momentum("FusedAdam", kwargs)
        warn_once("torch_musa.optim.FusedAdam", "torch.optim.Adam(params, fused=True)")
        super().__init__(params, *args, fused=fused, **kwargs)


class FusedAdamW(torch.optim.AdamW):
    """`torch.optim.AdamW(fused=True)`, with all its arguments."""

    def __init__(self, params, *args, fused=True, **kwargs):
        _refuse_momentum("FusedAdamW", kwargs)
        warn_once("torch_musa.optim.FusedAdamW", "torch.optim.AdamW(params, fused=True)")
        super().__init__(params, *args, fused=fused, **kwargs)


def _refuse_momentum(name, arguments):
    """Raises a TypeError for the argument that an example of the vendor's README passes to Adam."""
    if "momentum" in arguments:
        raise TypeError(
            f"{name} has no argument 'momentum'. Fix: pass betas=({arguments['momentum']}, 0.999): the first "
            "value is the decay of the gradients' mean"
        )


class FusedLAMB(torch.optim.Optimizer):
    """LAMB (You et al., "Large Batch Optimization for Deep Learning", 2020), on lists of tensors.

    A step multiplies the learning rate of each parameter p by |p| / |u|, where u is Adam's update. It runs a
    fixed number of `torch._foreach_*` operators per dtype of a group, and does not wait for the device.

    Args:
        params (iterable): tensors, or dicts of groups.
        lr (float): the learning rate.
        bias_correction (bool): divide the moments by 1 - beta ** step.
        betas (tuple of float): decay of the first and the second moment.
        eps (float): added to the root of the second moment.
        weight_decay (float): factor of p. Where it is 0, the ratio is 1, unless use_nvlamb.
        amsgrad (bool): only False.
        adam_w_mode (bool): add weight_decay * p to the update; else to the gradient.
        grad_averaging (bool): multiply the gradient by 1 - beta1 in the first moment.
        set_grad_none (bool): the default of `zero_grad`'s argument.
        max_grad_norm (float): the gradients of all groups are scaled down to this norm; 0 for no limit.
        use_nvlamb (bool): the ratio applies to parameters without weight decay too.

    Raises:
        RuntimeError: amsgrad=True.
        ValueError: an argument out of range.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        bias_correction=True,
        betas=(0.9, 0.999),
        eps=1e-6,
        weight_decay=0.01,
        amsgrad=False,
        adam_w_mode=True,
        grad_averaging=True,
        set_grad_none=True,
        max_grad_norm=1.0,
        use_nvlamb=False,
    ):
        if amsgrad:
            raise RuntimeError("FusedLAMB has no AMSGrad variant.\nFix: pass amsgrad=False")
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            if value < 0:
                raise ValueError(f"{name} must be 0 or more, but got {value}")
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas must be from 0 to below 1, but got {betas}")
        self.adam_w_mode, self.set_grad_none, self.use_nvlamb = adam_w_mode, set_grad_none, use_nvlamb
        defaults = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "grad_averaging": grad_averaging,
            "max_grad_norm": max_grad_norm,
        }
        super().__init__(params, defaults)

    def zero_grad(self, set_to_none=None):
        """Clears the gradients.

        Args:
            set_to_none (bool, optional): set them to None instead of 0; `set_grad_none` unless given.
        """
        super().zero_grad(self.set_grad_none if set_to_none is None else set_to_none)

    @torch.no_grad()
    def step(self, closure=None):
        """Performs one step.

        Args:
            closure (callable, optional): recomputes the loss.

        Returns:
            The closure's result, or None.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with_gradient = [
            [parameter for parameter in group["params"] if parameter.grad is not None]
            for group in self.param_groups
        ]
        gradients = [parameter.grad for parameters in with_gradient for parameter in parameters]
        if not gradients:
            return loss
        norm = torch.nn.utils.get_total_norm(gradients)
        for group, parameters in zip(self.param_groups, with_gradient, strict=True):
            group["step"] = group.get("step", 0) + 1
            for of_dtype in _by_dtype(parameters):
                self._update(group, of_dtype, norm)
        return loss

    def _update(self, group, parameters, norm):
        beta1, beta2 = group["betas"]
        decay = group["weight_decay"]
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]["exp_avg"] = torch.zeros_like(parameter)
                self.state[parameter]["exp_avg_sq"] = torch.zeros_like(parameter)
        first = [self.state[parameter]["exp_avg"] for parameter in parameters]
        second = [self.state[parameter]["exp_avg_sq"] for parameter in parameters]

        gradients = [parameter.grad for parameter in parameters]
        limit = group["max_grad_norm"]
        if limit > 0:
            # Clamped to 1 below the limit, so that the host reads no value.
            gradients = torch._foreach_div(gradients, (norm / limit).clamp(min=1.0).to(gradients[0].dtype))
        if decay != 0 and not self.adam_w_mode:
            gradients = torch._foreach_add(gradients, parameters, alpha=decay)
        torch._foreach_mul_(first, beta1)
        torch._foreach_add_(first, gradients, alpha=1 - beta1 if group["grad_averaging"] else 1.0)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, value=1 - beta2)

        correction1 = 1 - beta1 ** group["step"] if group["bias_correction"] else 1.0
        correction2 = 1 - beta2 ** group["step"] if group["bias_correction"] else 1.0
        root = torch._foreach_sqrt(second)
        torch._foreach_div_(root, correction2**0.5)
        torch._foreach_add_(root, group["eps"])
        update = torch._foreach_div(first, correction1)
        torch._foreach_div_(update, root)
        if decay != 0 and self.adam_w_mode:
            torch._foreach_add_(update, parameters, alpha=decay)
        if decay != 0 or self.use_nvlamb:
            torch._foreach_mul_(update, _ratios(parameters, update))
        torch._foreach_add_(parameters, update, alpha=-group["lr"])


def _ratios(parameters, update):
    """Returns |p| / |u| per pair as 0-dim tensors, or 1 if either norm is 0."""
    pairs = zip(torch._foreach_norm(parameters), torch._foreach_norm(update), strict=True)
    return [torch.where((p > 0) & (u > 0), p / u, torch.ones_like(p)) for p, u in pairs]


def _by_dtype(parameters):
    """Groups parameters by dtype and device."""
    found = {}
    for parameter in parameters:
        found.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    return found.values()


__all__ = ["FusedAdam", "FusedAdamW", "FusedLAMB"]
