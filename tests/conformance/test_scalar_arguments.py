# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Unusual scalar arguments (NaN, infinities, zero, negative, tiny, huge) have the CPU's result or refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from tests.conformance.comparison import Mismatch, Outcome, outcome_of, require_same_outcome

REALS = (float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e-300, 1e30, 1e300)
# 1e300 has no float32. As an exponent or an order the CPU takes it, and CUDA refuses it. With 1e-300, and
# with NaN for hardshrink, hardtanh and logit, the CPU has two results in one tensor; attention with a scale
# of NaN is 0 on the CPU in float32 and NaN in float64. Probabilities in a tensor are checked on the device,
# as by CUDA.
EXPONENTS = (float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e30)
PROBABILITIES = (float("nan"), float("inf"), -0.5, 0.0, 1.0, 1.5)
WHOLE = (-3, -1, 0, 1)


def with_gradients(call: Callable[..., torch.Tensor]) -> Callable[..., list[torch.Tensor]]:
    """The call, and the gradients of all operands."""

    def run(value: float, *operands: torch.Tensor) -> list[torch.Tensor]:
        leaves = [one.clone().requires_grad_() for one in operands]
        result = call(value, *leaves)
        return [result.detach(), *torch.autograd.grad(result.sum(), leaves, allow_unused=True)]

    return run


# Called with the value, a (4, 6) matrix, and two vectors of 6.
MATRIX: dict[str, tuple[Callable[..., torch.Tensor], tuple]] = {
    "layer_norm eps": (lambda v, x, w, b: F.layer_norm(x, (6,), w, b, v), REALS),
    "rms_norm eps": (lambda v, x, w, b: F.rms_norm(x, (6,), w, v), REALS),
    "group_norm eps": (lambda v, x, w, b: F.group_norm(x, 2, w, b, v), REALS),
    "group_norm groups": (lambda v, x, w, b: F.group_norm(x, v, w, b), WHOLE),
    "batch_norm eps": (lambda v, x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, v), REALS),
    "batch_norm eval eps": (
        lambda v, x, w, b: F.batch_norm(x, w.detach(), b.detach() ** 2, w, b, False, 0.1, v),
        REALS,
    ),
    "batch_norm momentum": (lambda v, x, w, b: running_mean(v, x), EXPONENTS[:-1]),
    "instance_norm eps": (lambda v, x, w, b: F.instance_norm(x[None], eps=v), REALS),
    "normalize eps": (lambda v, x, w, b: F.normalize(x, eps=v), REALS),
    "cosine eps": (lambda v, x, w, b: F.cosine_similarity(x, w, eps=v), REALS),
    "leaky_relu": (lambda v, x, w, b: F.leaky_relu(x, v), REALS),
    "elu": (lambda v, x, w, b: F.elu(x, v), REALS),
    "celu": (lambda v, x, w, b: F.celu(x, v), REALS),
    "softplus beta": (lambda v, x, w, b: F.softplus(x, v), REALS),
    "softplus threshold": (lambda v, x, w, b: F.softplus(x, 1, v), REALS),
    "hardshrink": (lambda v, x, w, b: F.hardshrink(x, v), REALS[1:]),
    "softshrink": (lambda v, x, w, b: F.softshrink(x, v), REALS),
    "threshold": (lambda v, x, w, b: F.threshold(x, v, 7.0), REALS),
    "threshold value": (lambda v, x, w, b: F.threshold(x, 0.1, v), REALS),
    "hardtanh": (lambda v, x, w, b: F.hardtanh(x, -v, v), REALS[1:]),
    "clamp": (lambda v, x, w, b: x.clamp(v, 1), REALS),
    "clamp_max": (lambda v, x, w, b: x.clamp_max(v), REALS),
    "pow": (lambda v, x, w, b: x**v, EXPONENTS),
    "scalar pow": (lambda v, x, w, b: torch.pow(v, x), REALS),
    "add alpha": (lambda v, x, w, b: torch.add(x, w, alpha=v), REALS),
    "mul": (lambda v, x, w, b: x * v, REALS),
    "div": (lambda v, x, w, b: x / v, REALS),
    "floor divide": (lambda v, x, w, b: torch.floor_divide(x.detach(), v) + 0 * x, REALS),
    "remainder": (lambda v, x, w, b: torch.remainder(x, v), REALS),
    "fmod": (lambda v, x, w, b: torch.fmod(x, v), REALS),
    "compared": (lambda v, x, w, b: (x < v) * x, REALS),
    "addmm": (lambda v, x, w, b: torch.addmm(w, x, x.t() @ x, alpha=v), REALS),
    "addmm beta": (lambda v, x, w, b: torch.addmm(w, x, x.t() @ x, beta=v), REALS),
    "addmv": (lambda v, x, w, b: torch.addmv(x[:, 0], x, w, beta=v, alpha=v), REALS),
    "baddbmm": (lambda v, x, w, b: torch.baddbmm(w, x[None], (x.t() @ x)[None], beta=v, alpha=2), REALS),
    "addcmul": (lambda v, x, w, b: torch.addcmul(x, w, b, value=v), REALS),
    "addcdiv": (lambda v, x, w, b: torch.addcdiv(x, w, b, value=v), REALS),
    "lerp": (lambda v, x, w, b: torch.lerp(x, w, v), REALS),
    "norm order": (lambda v, x, w, b: torch.linalg.vector_norm(x, v, 1), EXPONENTS),
    "renorm": (lambda v, x, w, b: torch.renorm(x, 2, 0, v), REALS),
    "var correction": (lambda v, x, w, b: x.var(1, correction=v), REALS),
    "std correction": (lambda v, x, w, b: x.std(correction=v), REALS),
    "var_mean correction": (lambda v, x, w, b: torch.var_mean(x, 0, correction=v)[0], REALS),
    "smooth_l1": (lambda v, x, w, b: F.smooth_l1_loss(x, b.expand_as(x), beta=v), REALS),
    "huber": (lambda v, x, w, b: F.huber_loss(x, b.expand_as(x), delta=v), REALS),
    "label smoothing": (
        lambda v, x, w, b: F.cross_entropy(x, torch.arange(4, device=x.device), label_smoothing=v),
        PROBABILITIES,
    ),
    "ignore_index": (
        lambda v, x, w, b: F.cross_entropy(x, torch.arange(4, device=x.device), ignore_index=v),
        WHOLE,
    ),
    "margin": (lambda v, x, w, b: F.margin_ranking_loss(x, w.expand_as(x), x.sign(), margin=v), REALS),
    "hinge": (lambda v, x, w, b: F.hinge_embedding_loss(x, x.sign(), margin=v), REALS),
    "triplet": (
        lambda v, x, w, b: F.triplet_margin_loss(x, w.expand_as(x), b.expand_as(x), margin=1, p=v),
        EXPONENTS,
    ),
    "attention scale": (
        lambda v, x, w, b: F.scaled_dot_product_attention(
            x[None, None], x[None, None] + w, x[None, None] + b, scale=v
        ),
        REALS[3:6],
    ),
    "nan_to_num": (lambda v, x, w, b: torch.nan_to_num(x / 0, v, v, v), EXPONENTS),
    "logit": (lambda v, x, w, b: torch.logit(x.sigmoid(), v), REALS[1:]),
    "local_response_norm": (lambda v, x, w, b: F.local_response_norm(x[None], 2, alpha=v), REALS),
    "cdist": (lambda v, x, w, b: torch.cdist(x, x + w, p=v), EXPONENTS),
    "masked_fill": (lambda v, x, w, b: x.masked_fill(x > 0, v), REALS),
    "padding": (lambda v, x, w, b: F.pad(x, (1, 1), value=v), REALS),
    "padded by": (lambda v, x, w, b: F.pad(x, (v, 2)), WHOLE),
    "glu": (lambda v, x, w, b: F.glu(x, v), WHOLE),
    "softmax": (lambda v, x, w, b: x.softmax(v), WHOLE),
    "cumsum": (lambda v, x, w, b: x.cumsum(v), WHOLE),
    "topk": (lambda v, x, w, b: x.topk(v).values, WHOLE),
    "kthvalue": (lambda v, x, w, b: x.kthvalue(v).values, WHOLE),
    "unfold": (lambda v, x, w, b: x.unfold(1, v, 2), WHOLE),
    "roll": (lambda v, x, w, b: x.roll(v, 1), WHOLE),
    "diagonal": (lambda v, x, w, b: x.diagonal(v), WHOLE),
    "tril": (lambda v, x, w, b: x.tril(v), WHOLE),
    "prelu": (lambda v, x, w, b: F.prelu(x, w * v), REALS),
    "dropout": (lambda v, x, w, b: F.dropout(x, v) * 0, PROBABILITIES),
    "dropout in evaluation": (lambda v, x, w, b: F.dropout(x, v, training=False), PROBABILITIES),
    "alpha_dropout": (lambda v, x, w, b: F.alpha_dropout(x, v) * 0, PROBABILITIES),
    "bernoulli": (lambda v, x, w, b: torch.full_like(x.detach(), v).bernoulli() + x, (0.0, 1.0)),
}
# Called with the value and a (2, 2, 8, 8) tensor.
PLANES: dict[str, tuple[Callable[..., torch.Tensor], tuple]] = {
    "avg_pool2d kernel": (lambda v, x: F.avg_pool2d(x, v), WHOLE),
    "avg_pool2d stride": (lambda v, x: F.avg_pool2d(x, 2, v), WHOLE),
    "avg_pool2d pad": (lambda v, x: F.avg_pool2d(x, 2, 2, v), WHOLE),
    "avg_pool2d divisor": (lambda v, x: F.avg_pool2d(x, 2, divisor_override=v), WHOLE),
    "max_pool2d kernel": (lambda v, x: F.max_pool2d(x, v), WHOLE),
    "max_pool2d stride": (lambda v, x: F.max_pool2d(x, 2, v), WHOLE),
    "max_pool2d pad": (lambda v, x: F.max_pool2d(x, 2, 2, v), WHOLE),
    "max_pool2d dilation": (lambda v, x: F.max_pool2d(x, 2, 2, 0, v), WHOLE),
    "adaptive_avg_pool2d": (lambda v, x: F.adaptive_avg_pool2d(x, v), WHOLE),
    "adaptive_max_pool2d": (lambda v, x: F.adaptive_max_pool2d(x, v), WHOLE),
    "lp_pool2d": (lambda v, x: F.lp_pool2d(x.abs() + 1, v, 2), EXPONENTS),
    "conv2d stride": (lambda v, x: F.conv2d(x, x[:, :, :3, :3], stride=v), WHOLE),
    "conv2d pad": (lambda v, x: F.conv2d(x, x[:, :, :3, :3], padding=v), WHOLE),
    "conv2d dilation": (lambda v, x: F.conv2d(x, x[:, :, :3, :3], dilation=v), WHOLE),
    "conv2d groups": (lambda v, x: F.conv2d(x, x[:, :1, :3, :3], groups=v), (*WHOLE, 2)),
    "nearest scale": (lambda v, x: F.interpolate(x, scale_factor=v), (0.0, -1.0, float("nan"), 1e-3, 1.5)),
    "bilinear scale": (
        lambda v, x: F.interpolate(x, scale_factor=v, mode="bilinear"),
        (0.0, -1.0, 1e-3, 1.5),
    ),
    "bicubic size": (lambda v, x: F.interpolate(x, size=v, mode="bicubic"), WHOLE),
    "pixel_shuffle": (lambda v, x: F.pixel_unshuffle(x, v), WHOLE),
    "channel_shuffle": (lambda v, x: F.channel_shuffle(x.detach(), v) + x, WHOLE),
    "batch_norm2d eps": (lambda v, x: F.batch_norm(x, None, None, training=True, eps=v), REALS),
    "group_norm2d eps": (lambda v, x: F.group_norm(x, 2, eps=v), REALS),
    "layer_norm of planes eps": (lambda v, x: F.layer_norm(x, (8, 8), eps=v), REALS),
    "rms_norm of planes eps": (lambda v, x: F.rms_norm(x, (8, 8), eps=v), REALS),
}


def running_mean(momentum: float, x: torch.Tensor) -> torch.Tensor:
    mean, variance = torch.ones(6).to(x.device), torch.ones(6).to(x.device)
    result = F.batch_norm(x, mean, variance, training=True, momentum=momentum)
    return result + mean + variance


def cases() -> list:
    generator = torch.Generator().manual_seed(0)
    matrix = [torch.randn(shape, generator=generator) for shape in ((4, 6), (6,), (6,))]
    plane = [torch.randn(2, 2, 8, 8, generator=generator)]
    found = []
    for calls, operands in ((MATRIX, matrix), (PLANES, plane)):
        for name, (call, values) in calls.items():
            found.append(pytest.param(call, values, operands, id=name.replace(" ", "_")))
    return found


def differences(
    call: Callable[..., torch.Tensor], values: tuple, operands: list[torch.Tensor], device: str
) -> list:
    found = []
    for value in values:
        for run in (with_gradients(call), lambda v, *all_, call=call: call(v, *all_)):
            expected = outcome_of(lambda run=run, value=value: run(value, *operands))
            on_device = [one.to(device) for one in operands]
            actual = outcome_of(lambda run=run, value=value, on_device=on_device: run(value, *on_device))
            try:
                require_same_outcome(expected, actual, device)
            except Mismatch as error:
                found.append(f"{value}: {str(error)[:600]}")
    return found


@pytest.mark.parametrize(("call", "values", "operands"), cases())
def test_unusual_values(device: str, call: Callable, values: tuple, operands: list[torch.Tensor]) -> None:
    assert not differences(call, values, operands, device)


def test_a_device_that_refuses_or_computes_something_else_is_found() -> None:
    computed, refused = Outcome(value=torch.ones(1)), Outcome(error=RuntimeError("INVALID_PARAMETER"))
    for expected, actual in (
        (computed, refused),
        (refused, computed),
        (computed, Outcome(value=torch.zeros(1))),
    ):
        with pytest.raises(Mismatch):
            require_same_outcome(expected, actual, "cpu")
