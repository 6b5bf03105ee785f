# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Optimizer steps of bitsandbytes with 32-bit or 8-bit states.

Both update in float32 with the same functions, which change state and parameter in place.
"""

import math

import torch

_BLOCK = 256  # elements per block of an 8-bit state


class _Step:
    """The hyperparameters of one step, named like the operators' arguments."""

    def __init__(self, beta1, beta2, beta3, alpha, eps, weight_decay, step, lr):
        self.beta1, self.beta2, self.beta3, self.alpha = beta1, beta2, beta3, alpha
        self.eps, self.weight_decay, self.step, self.lr = eps, weight_decay, step, lr
        self.correction1 = 1 - beta1**step
        self.correction2 = math.sqrt(1 - beta2**step)

    def decay(self, p):
        """Applies decoupled weight decay."""
        if self.weight_decay > 0:
            p.mul_(1 - self.lr * self.weight_decay)

    def with_penalty(self, p, g):
        """Returns the gradient with that of the L2 penalty added."""
        return g.add(p, alpha=self.weight_decay) if self.weight_decay > 0 else g


def _average(state, value, beta):
    state.mul_(beta).add_(value, alpha=1 - beta)


def _average_square(state, g, beta):
    state.mul_(beta).addcmul_(g, g, value=1 - beta)


def _adam(h, p, g, m, v, scale):
    _average(m, g, h.beta1)
    _average_square(v, g, h.beta2)
    h.decay(p)
    update = m.div(v.sqrt().add_(h.eps * h.correction2))
    p.add_(_scaled(update, scale), alpha=-h.lr * h.correction2 / h.correction1)


def _ademamix(h, p, g, m, v, scale):
    fast, slow = m[0], m[1]
    _average(fast, g, h.beta1)
    _average(slow, g, h.beta3)
    _average_square(v, g, h.beta2)
    h.decay(p)
    numerator = fast.div(h.correction1).add_(slow, alpha=h.alpha)
    p.addcdiv_(numerator, v.sqrt().div_(h.correction2).add_(h.eps), value=-h.lr)


def _momentum(h, p, g, m, v, scale):
    g = h.with_penalty(p, g)
    if h.step == 1:
        m.copy_(g)
    else:
        m.mul_(h.beta1).add_(g)
    p.add_(_scaled(m, scale), alpha=-h.lr)


def _lion(h, p, g, m, v, scale):
    h.decay(p)
    direction = m.mul(h.beta1).add_(g, alpha=1 - h.beta1).sign_()
    p.add_(_scaled(direction, scale), alpha=-h.lr)
    _average(m, g, h.beta2)


def _rmsprop(h, p, g, m, v, scale):
    g = h.with_penalty(p, g)
    _average_square(m, g, h.beta1)
    p.add_(_scaled(g / m.sqrt().add_(h.eps), scale), alpha=-h.lr)


def _adagrad(h, p, g, m, v, scale):
    g = h.with_penalty(p, g)
    m.addcmul_(g, g)
    p.addcdiv_(g, m.sqrt().add_(h.eps), value=-h.lr)


_UPDATES = {
    "momentum": _momentum,
    "lars": _momentum,
    "rmsprop": _rmsprop,
    "adagrad": _adagrad,
    "adam": _adam,
    "lamb": _adam,
    "lion": _lion,
    "ademamix": _ademamix,
}


def _scaled(update, scale):
    return update if scale is None else update * scale


def _update(name, skip_zeros):
    """Returns the update function of an optimizer. Raises for options that only CUDA kernels support."""
    if skip_zeros:
        raise NotImplementedError("skip_zeros is not supported on musa. Fix: leave out skip_zeros=True")
    if name not in _UPDATES:
        raise ValueError(f"optimizer {name!r} is not one of {', '.join(sorted(_UPDATES))}")
    return _UPDATES[name]


def _norm_of_update(name, h, g, m, v):
    """Returns the sum of squares of this step's update, without weight decay. Does not change the state.

    For lion and ademamix it is the sum of the mean itself, which bitsandbytes' other kernels do not square.
    """
    if name in ("adam", "lamb"):
        m = m.mul(h.beta1).add_(g, alpha=1 - h.beta1).div_(h.correction1)
        v = v.mul(h.beta2).addcmul_(g, g, value=1 - h.beta2).div_(h.correction2**2)
        update = m.div_(v.sqrt_().add_(h.eps))
    elif name in ("momentum", "lars"):
        update = g if h.step == 1 else m.mul(h.beta1).add_(g)
    elif name == "rmsprop":
        update = g / m.mul(h.beta1).addcmul_(g, g, value=1 - h.beta1).sqrt_().add_(h.eps)
    elif name == "adagrad":
        update = g / m.addcmul(g, g).sqrt_().add_(h.eps)
    elif name == "lion":
        return m.mul(h.beta2).add_(g, alpha=1 - h.beta2).sum()
    else:
        return m.sum()
    return update.square().sum()


def _limit(name, unorm_vec, max_unorm, param_norm, eps):
    """Returns the factor that limits an update to `max_unorm` times the parameter's norm, as a tensor.

    Optimizers with two states ignore `eps`, as in bitsandbytes' other kernels.
    """
    norm = unorm_vec.sqrt()
    largest = max_unorm * param_norm + (0.0 if name in ("adam", "lamb", "ademamix") else eps)
    return torch.where(norm > largest, largest / norm, 1.0)


def optimizer_update_32bit(
    optimizer_name,
    g,
    p,
    state1,
    state2,
    unorm_vec,
    max_unorm,
    param_norm,
    beta1,
    beta2,
    beta3,
    alpha,
    eps,
    weight_decay,
    step,
    lr,
    gnorm_scale=1.0,
    skip_zeros=False,
):
    """Performs one step with float32 states, in place.

    Args:
        optimizer_name (str): momentum, lars, rmsprop, adagrad, adam, lamb, lion or ademamix.
        g, p (Tensor): gradient and parameter, float32, float16 or bfloat16, of equal shapes.
        state1, state2 (Tensor): float32; `state2` is None for optimizers with one state. `state1` of ademamix
            contains two tensors of the shape of `p`.
        unorm_vec (Tensor or None): one float32 element that receives the squared norm of the update.
        max_unorm (float): largest norm of an update relative to `param_norm`; 0.0 for no limit.
        gnorm_scale (float): factor of the gradient.

    Raises:
        NotImplementedError: for `skip_zeros`, as in bitsandbytes' default kernel.
        ValueError: for an unknown optimizer.
    """
    update = _update(optimizer_name, skip_zeros)
    if update is _adam and max_unorm == 0.0 and gnorm_scale == 1.0 and g.dtype == p.dtype == torch.float32:
        _fused_adam(g, p, state1, state2, beta1, beta2, eps, weight_decay, step, lr)
        return
    h = _Step(beta1, beta2, beta3, alpha, eps, weight_decay, step, lr)
    g = g.float() * gnorm_scale if gnorm_scale != 1.0 else g.float()
    values = p.float()  # `p` itself if it is float32
    scale = None
    if max_unorm > 0.0:
        # Lion limits by the norm of the previous step.
        if update is not _lion:
            unorm_vec.fill_(_norm_of_update(optimizer_name, h, g, state1, state2))
        scale = _limit(optimizer_name, unorm_vec, max_unorm, param_norm, eps)
    update(h, values, g, state1, state2, scale)
    if max_unorm > 0.0 and update is _lion:
        unorm_vec.fill_(_norm_of_update(optimizer_name, h, g, state1, state2))
    if values.dtype != p.dtype:
        p.copy_(values)


def _fused_adam(g, p, m, v, beta1, beta2, eps, weight_decay, step, lr):
    steps = [torch.full((), step, dtype=torch.float32, device=p.device)]
    options = {"lr": lr, "beta1": beta1, "beta2": beta2, "weight_decay": weight_decay, "eps": eps}
    torch._fused_adamw_([p], [g], [m], [v], [], steps, amsgrad=False, maximize=False, **options)


def optimizer_update_8bit_blockwise(
    optimizer_name,
    g,
    p,
    state1,
    state2,
    beta1,
    beta2,
    beta3,
    alpha,
    eps,
    step,
    lr,
    qmap1,
    qmap2,
    absmax1,
    absmax2,
    weight_decay,
    gnorm_scale=1.0,
    skip_zeros=False,
):
    """Performs one step with states of 8-bit codes in blocks of 256 elements, in place.

    Args:
        state1, state2 (Tensor): uint8 codes; `state2` is None for optimizers with one state.
        qmap1, qmap2 (Tensor): float32 of 256 elements, the value of each code.
        absmax1, absmax2 (Tensor): float32, the scale of each block.

    See `optimizer_update_32bit` for the other arguments and the errors.
    """
    update = _update(optimizer_name, skip_zeros)
    h = _Step(beta1, beta2, beta3, alpha, eps, weight_decay, step, lr)
    g = g.float() * gnorm_scale if gnorm_scale != 1.0 else g.float()
    values = p.float()
    states = [(state1, qmap1, absmax1)] + ([] if state2 is None else [(state2, qmap2, absmax2)])
    m, v = [_decode(*state) for state in states] + [None] * (2 - len(states))
    update(h, values, g, m, v, None)
    if values.dtype != p.dtype:
        p.copy_(values)
    for state, value in zip(states, (m, v)):
        _encode(value, *state)


def _decode(codes, qmap, absmax):
    if absmax.dim() == 2:  # the two means of ademamix
        return torch.stack([_decode(c, qmap, a) for c, a in zip(codes, absmax)])
    return torch.ops.bitsandbytes.dequantize_blockwise(codes, absmax, qmap, _BLOCK, torch.float32)


def _encode(value, codes, qmap, absmax):
    if absmax.dim() == 2:
        for parts in zip(value, codes, absmax):
            _encode(parts[0], parts[1], qmap, parts[2])
        return
    new_codes, new_absmax = torch.ops.bitsandbytes.quantize_blockwise(value, qmap, _BLOCK)
    codes.copy_(new_codes)
    absmax.copy_(new_absmax)
