# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Where torch's CPU is wrong, results are those of the definition in float64, or exactly the CPU's.

Kernels that run on the host, the emulator's muDNN among them, are torch's own and have its errors. A case
that the CPU computes correctly in a newer torch leaves this list.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

INDICES = torch.tensor([1, 1, 2, 3, 3, 3, 9])
BAGS, STARTS = torch.tensor([0, 0, 0, 1, 1, 2, 2]), torch.tensor([0, 3, 5])
MASKED = [1, 3]  # rows of the query


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def bag_gradient(device: str, mode: str) -> list[torch.Tensor]:
    weight = normal(10, 3).to(device).requires_grad_()
    bags = F.embedding_bag(INDICES.to(device), weight, STARTS.to(device), scale_grad_by_freq=True, mode=mode)
    return list(torch.autograd.grad((bags * bags).sum(), weight))


def bag_gradient_by_definition(mode: str) -> list[torch.Tensor]:
    weight = normal(10, 3).double()
    share = 1 / torch.bincount(BAGS).double()[:, None] if mode == "mean" else torch.ones(3, 1).double()
    bags = torch.zeros(3, 3).double().index_add(0, BAGS, weight[INDICES]) * share
    gradient = torch.zeros(10, 3).double().index_add(0, INDICES, (2 * bags * share)[BAGS])
    return [gradient / torch.bincount(INDICES, minlength=10).clamp(min=1)[:, None]]


def additive_mask(device: str, dtype: torch.dtype) -> torch.Tensor:
    mask = torch.zeros(1, 1, 5, 7)
    mask[:, :, MASKED] = torch.finfo(torch.float32).min
    return mask.to(device, dtype)


def attention_gradients(attention: Callable, device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    leaves = [
        normal(1, 2, rows, 8, seed=n).to(device, dtype).requires_grad_() for n, rows in enumerate((5, 7, 7))
    ]
    out = attention(*leaves, additive_mask(device, dtype))
    return [out.detach(), *torch.autograd.grad((out * out).sum(), leaves)]


def defined(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 + mask).softmax(-1) @ v


# The CPU's kernels of these operators take tensors with the channels last for contiguous ones.


def image(seed: int, *, channels_last: bool = True) -> torch.Tensor:
    made = normal(2, 3, 4, 5, seed=seed)
    return made.to(memory_format=torch.channels_last) if channels_last else made


def first_column() -> torch.Tensor:
    return torch.zeros(2, 3, 4, 5, dtype=torch.bool).index_fill_(3, torch.tensor([0]), True)


def padded_into_gaps(device: str) -> list[torch.Tensor]:
    everything = torch.zeros(2, 3, 6, 14, device=device)
    torch.ops.aten.replication_pad2d.out(image(0).to(device), [1, 1, 1, 1], out=everything[..., ::2])
    return [everything]


def padded_into_gaps_by_definition() -> list[torch.Tensor]:
    everything = torch.zeros(2, 3, 6, 14).double()
    everything[..., ::2] = F.pad(image(0, channels_last=False).double(), (1, 1, 1, 1), "replicate")
    return [everything]


def fractional_pooling() -> tuple[torch.Tensor, torch.Tensor]:
    """The indices of a pooling to 2 x 2, and a gradient of its result."""
    places = torch.tensor([[0.1, 0.2], [0.3, 0.6], [0.5, 0.9]]).expand(2, 3, 2)
    return torch.ops.aten.fractional_max_pool2d(image(0), [2, 2], [2, 2], places)[1], normal(
        2, 3, 2, 2, seed=1
    )


def fractional_gradient(device: str) -> list[torch.Tensor]:
    indices, gradient = fractional_pooling()
    indices = indices.to(memory_format=torch.channels_last)
    backward = torch.ops.aten.fractional_max_pool2d_backward
    return [backward(gradient.to(device), image(0).to(device), [2, 2], [2, 2], indices.to(device))]


def fractional_gradient_by_definition() -> list[torch.Tensor]:
    indices, gradient = fractional_pooling()
    sums = torch.zeros(2, 3, 20).double().scatter_add_(2, indices.flatten(2), gradient.double().flatten(2))
    return [sums.view(2, 3, 4, 5)]


CASES: dict[str, tuple[Callable[[str], list[torch.Tensor]], Callable[[], list[torch.Tensor]]]] = {
    "embedding_bag sum by frequency": (
        lambda device: bag_gradient(device, "sum"),
        lambda: bag_gradient_by_definition("sum"),
    ),
    "embedding_bag mean by frequency": (
        lambda device: bag_gradient(device, "mean"),
        lambda: bag_gradient_by_definition("mean"),
    ),
    "attention to rows masked by the smallest number": (
        lambda device: attention_gradients(
            lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask), device, torch.float32
        ),
        lambda: attention_gradients(defined, "cpu", torch.float64),
    ),
    "masked softmax of an image": (
        lambda device: [torch.ops.aten._masked_softmax(image(0).to(device), first_column().to(device), 3, 2)],
        lambda: [image(0).double().masked_fill(first_column(), -torch.inf).softmax(3)],
    ),
    "fractional pooling's gradient": (fractional_gradient, fractional_gradient_by_definition),
    "replicated border into a tensor with gaps": (
        padded_into_gaps,
        padded_into_gaps_by_definition,
    ),
}


def far(found: list[torch.Tensor], exact: list[torch.Tensor]) -> bool:
    return any(
        not torch.allclose(one.cpu().double(), other, rtol=1e-4, atol=1e-5)
        for one, other in zip(found, exact, strict=True)
    )


@pytest.mark.parametrize("case", CASES)
def test_the_result(device: str, case: str) -> None:
    compute, definition = CASES[case]
    exact, cpu, found = definition(), compute("cpu"), compute(device)
    assert far(cpu, exact), "torch's CPU is right here: remove the case"
    inherited = all(torch.allclose(one.cpu(), other) for one, other in zip(found, cpu, strict=True))
    # Kernels of the device are right; where none serves the operator, the CPU's function or its steps do.
    assert not far(found, exact) or inherited
