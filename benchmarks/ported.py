# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Kernels on the SIMT engine against torch's CPU, with the ported pack before all others."""

from collections.abc import Iterator

import torch

from .measure import Effort, Row, interleaved
from .operators import check_same
from .providers import served_by

ELEMENTS = 1_000_000
PARAMETERS = 10_000_000
POINTWISE_BAR = 5.0
REDUCTION_BAR = 10.0
OPTIMIZER_BAR = 5.0

# Name, bar, function of two matrices with ELEMENTS floats.
OPERATORS = (
    ("a + b", POINTWISE_BAR, lambda a, b: torch.add(a, b)),
    ("a * 2", POINTWISE_BAR, lambda a, b: torch.mul(a, 2)),
    ("exp", POINTWISE_BAR, lambda a, b: torch.exp(a)),
    ("sigmoid", POINTWISE_BAR, lambda a, b: torch.sigmoid(a)),
    ("a < b", POINTWISE_BAR, lambda a, b: torch.lt(a, b)),
    ("where", POINTWISE_BAR, lambda a, b: torch.where(a < b, a, b)),
    ("a ** 2", POINTWISE_BAR, lambda a, b: torch.pow(a, 2)),
    ("clamp", POINTWISE_BAR, lambda a, b: torch.clamp(a, 0.6, 1.2)),
    ("lerp", POINTWISE_BAR, lambda a, b: torch.lerp(a, b, 0.3)),
    ("round", POINTWISE_BAR, lambda a, b: torch.round(a)),
    ("sum", REDUCTION_BAR, lambda a, b: torch.sum(a)),
    ("sum of columns", REDUCTION_BAR, lambda a, b: torch.sum(a, 0)),
    ("sum of rows", REDUCTION_BAR, lambda a, b: torch.sum(a, 1)),
    ("max", REDUCTION_BAR, lambda a, b: torch.max(a)),
    ("max of rows", REDUCTION_BAR, lambda a, b: torch.max(a, 1).values),
    ("var", REDUCTION_BAR, lambda a, b: torch.var(a)),
    ("norm", REDUCTION_BAR, lambda a, b: torch.linalg.vector_norm(a)),
    ("count_nonzero", REDUCTION_BAR, lambda a, b: torch.count_nonzero(a)),
)


def measure_operator(name, bar, run, device: torch.device, baseline: torch.device, effort: Effort) -> Row:
    generator = torch.Generator().manual_seed(0)
    # Positive, so that sums have no cancellation and can be compared.
    inputs = [torch.rand(1000, ELEMENTS // 1000, generator=generator) + 0.5 for _ in range(2)]
    here = [tensor.clone().to(device) for tensor in inputs]
    there = [tensor.clone().to(baseline) for tensor in inputs]
    with torch.no_grad():
        check_same(name, run(*here), run(*there))
        served = served_by(lambda: run(*here), device)
        pair = interleaved(lambda: run(*here), device, lambda: run(*there), baseline, effort)
    return Row(
        "ported kernels", f"{name} on {ELEMENTS:.0e} floats", pair.value * 1e3, pair.baseline * 1e3, "ms",
        bar, ratio=pair.ratio, spread=pair.spread, served=served,
    )  # fmt: skip


def stepper(device: torch.device, parameters: int):
    """Returns a step of AdamW with foreach over ten tensors."""
    generator = torch.Generator().manual_seed(0)
    tensors = [
        torch.randn(parameters // 10, generator=generator).to(device).requires_grad_() for _ in range(10)
    ]
    for tensor in tensors:
        tensor.grad = torch.full_like(tensor, 0.01)
    optimizer = torch.optim.AdamW(tensors, lr=1e-3, foreach=True)

    def step() -> torch.Tensor:
        optimizer.step()
        return tensors[0].detach()

    return step


def measure_optimizer(device: torch.device, baseline: torch.device, effort: Effort, parameters: int) -> Row:
    here, there = stepper(device, parameters), stepper(baseline, parameters)
    name = "foreach AdamW"
    check_same(name, here(), there())
    served = served_by(here, device)
    there()  # so that both sides have run equally often
    pair = interleaved(here, device, there, baseline, effort)
    return Row(
        "ported kernels", f"{name} on {parameters:.0e} parameters", pair.value * 1e3, pair.baseline * 1e3,
        "ms", OPTIMIZER_BAR, ratio=pair.ratio, spread=pair.spread, served=served,
    )  # fmt: skip


def measure_all(device: torch.device, baseline: torch.device, effort: Effort, quick: bool) -> Iterator[Row]:
    with torch.get_device_module(device).ops.prefer("*", "ported", "host"):
        for name, bar, run in OPERATORS:
            yield measure_operator(name, bar, run, device, baseline, effort)
        yield measure_optimizer(device, baseline, effort, 100_000 if quick else PARAMETERS)
