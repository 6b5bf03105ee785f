# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch_musa.optim: Adam equals torch's, and LAMB equals a loop over tensors in float64."""

import warnings

import pytest
import torch

from musa_compat import optim

OPTIONS = [
    {},
    {"weight_decay": 0.0},
    {"weight_decay": 0.0, "use_nvlamb": True},
    {"adam_w_mode": False, "max_grad_norm": 0.0},
    {"bias_correction": False, "grad_averaging": False, "max_grad_norm": 100.0},
]


def reference(parameters, gradients, steps, lr=0.1, betas=(0.9, 0.999), eps=1e-6, **options):
    """LAMB, one tensor after the other, in float64."""
    decay = options.get("weight_decay", 0.01)
    limit = options.get("max_grad_norm", 1.0)
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]
    for step in range(1, steps + 1):
        norm = torch.sqrt(sum((gradient**2).sum() for gradient in gradients))
        scale = max(norm.item() / limit, 1.0) if limit > 0 else 1.0
        for index, (p, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            g = gradient / scale
            if not options.get("adam_w_mode", True):
                g = g + decay * p
            first, second = moments[index]
            first = betas[0] * first + (1 - betas[0] if options.get("grad_averaging", True) else 1) * g
            second = betas[1] * second + (1 - betas[1]) * g * g
            moments[index] = first, second
            if options.get("bias_correction", True):
                first, second = first / (1 - betas[0] ** step), second / (1 - betas[1] ** step)
            update = first / (second.sqrt() + eps)
            if options.get("adam_w_mode", True):
                update = update + decay * p
            ratio = 1.0
            if decay != 0 or options.get("use_nvlamb"):
                ratio = (p.norm() / update.norm()).item() if p.norm() > 0 and update.norm() > 0 else 1.0
            parameters[index] = p - lr * ratio * update
    return parameters


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_lamb(musa, options):
    torch.manual_seed(3)
    start = [torch.randn(4, 3), torch.randn(5), torch.zeros(2)]
    gradients = [torch.randn(4, 3), torch.randn(5), torch.randn(2)]
    expected = reference([p.double() for p in start], [g.double() for g in gradients], 3, **options)
    parameters = [p.to("musa").requires_grad_() for p in start]
    optimizer = optim.FusedLAMB([{"params": parameters[:2]}, {"params": parameters[2:]}], lr=0.1, **options)
    for _ in range(3):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.to("musa")
        optimizer.step()
    for parameter, value in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.detach().cpu().double(), value, rtol=1e-4, atol=1e-5)


def steps(gradients, **options):
    """Parameters after three steps of FusedLAMB, and of the reference in float64."""
    start = [torch.linspace(-2, 1, 12).view(4, 3), torch.full((5,), 0.3), torch.zeros(2)]
    expected = reference([p.double() for p in start], [g.double() for g in gradients], 3, **options)
    parameters = [p.to("musa").requires_grad_() for p in start]
    optimizer = optim.FusedLAMB(parameters, **options)
    for _ in range(3):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.to("musa")
        optimizer.step()
    return [parameter.detach().cpu().double() for parameter in parameters], expected


def distance(some, others):
    return max((one - other).abs().max().item() for one, other in zip(some, others, strict=True))


@pytest.mark.parametrize("adam_w_mode", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0, 3.0, 50.0])
def test_gradients_are_scaled_down_to_the_limit_and_not_up(musa, share, adam_w_mode):
    """The norm is `share` of max_grad_norm. The update depends on the norm, because eps is large."""
    limit = 2.0
    torch.manual_seed(5)
    gradients = [torch.randn(4, 3), torch.randn(5), torch.randn(2)]
    norm = torch.nn.utils.get_total_norm(gradients)
    gradients = [gradient * (share * limit / norm) for gradient in gradients]
    options = {"lr": 0.1, "eps": 1.0, "weight_decay": 0.5, "adam_w_mode": adam_w_mode}
    found, expected = steps(gradients, max_grad_norm=limit, **options)
    assert distance(found, expected) < 1e-5
    unlimited, _ = steps(gradients, max_grad_norm=0.0, **options)
    assert (distance(found, unlimited) > 1e-2) == (share > 1)
    if share > 0:
        at_the_limit, _ = steps([gradient / share for gradient in gradients], max_grad_norm=0.0, **options)
        assert (distance(found, at_the_limit) > 1e-2) == (share < 1)


def test_the_norm_is_of_all_groups_and_each_group_has_its_limit(musa):
    gradient = torch.full((4,), 3.0)  # the norm of both is 6 * sqrt(2)
    parameters = [torch.ones(4, device="musa", requires_grad=True) for _ in range(2)]
    limits = (1e9, 0.6)
    options = {"lr": 0.1, "eps": 1.0, "weight_decay": 0.5}
    groups = [{"params": [p], "max_grad_norm": limit} for p, limit in zip(parameters, limits, strict=True)]
    optimizer = optim.FusedLAMB(groups, **options)
    for parameter in parameters:
        parameter.grad = gradient.musa()
    optimizer.step()
    scales = (1.0, 6 * 2**0.5 / 0.6)
    for parameter, scale in zip(parameters, scales, strict=True):
        scaled = gradient.double() / scale
        [value] = reference([torch.ones(4).double()], [scaled], 1, max_grad_norm=0, **options)
        torch.testing.assert_close(parameter.detach().cpu().double(), value, rtol=1e-5, atol=1e-6)


def test_lamb_goes_on_from_its_state(musa):
    torch.manual_seed(4)

    def trained(steps, state=None):
        weight = torch.full((3,), 2.0, device="musa", requires_grad=True)
        optimizer = optim.FusedLAMB([weight], lr=0.05)
        if state is not None:
            weight.data.copy_(state[0])
            optimizer.load_state_dict(state[1])
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (weight**2).sum()
            loss.backward()
            losses.append(optimizer.step(lambda loss=loss: loss.detach()).item())
        return losses, (weight.detach(), optimizer.state_dict())

    whole, _ = trained(6)
    first, state = trained(3)
    second, _ = trained(3, state)
    assert whole[-1] < whole[0]
    assert first + second == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"amsgrad": True}, RuntimeError, "AMSGrad"),
        ({"lr": -1.0}, ValueError, "lr must be 0 or more"),
        ({"betas": (0.9, 1.0)}, ValueError, "betas"),
    ],
)
def test_lamb_refuses(arguments, error, text):
    with pytest.raises(error, match=text):
        optim.FusedLAMB([torch.zeros(1, requires_grad=True)], **arguments)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_adam_is_torchs_fused_one(musa, name):
    ours, theirs = (torch.ones(3, device="musa", requires_grad=True) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        optimizer = getattr(optim, f"Fused{name}")([ours], lr=0.1, betas=(0.8, 0.9), weight_decay=0.1)
    assert optimizer.defaults["fused"] is True
    reference = getattr(torch.optim, name)([theirs], lr=0.1, betas=(0.8, 0.9), weight_decay=0.1, fused=True)
    for weight, each in ((ours, optimizer), (theirs, reference)):
        for _ in range(3):
            weight.grad = torch.full_like(weight, 0.5)
            each.step()
    assert torch.equal(ours, theirs)
