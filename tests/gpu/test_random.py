# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Random numbers of one seed on the musa device and on torch.cuda."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.once

N = 10007
EQUAL = {
    "rand": lambda device: torch.rand(N, device=device),
    "rand float64": lambda device: torch.rand(N, device=device, dtype=torch.float64),
    "uniform_ half": lambda device: torch.empty(N, device=device, dtype=torch.float16).uniform_(-1, 3),
    "randint": lambda device: torch.randint(0, 1000, (N,), device=device),
    "randint wide": lambda device: torch.randint(0, 1 << 40, (N,), device=device),
    "bernoulli_": lambda device: torch.empty(N, device=device).bernoulli_(0.3),
    "bernoulli": lambda device: torch.bernoulli(torch.full((N,), 0.4, device=device)),
    "randperm": lambda device: torch.randperm(N, device=device),
    "randperm small": lambda device: torch.randperm(100, device=device),
    "dropout": lambda device: torch.nn.functional.dropout(torch.ones(N, device=device), 0.4),
}
# The functions of a GPU's library in place of curand's approximations.
NEAR = {
    "randn": lambda device: torch.randn(N, device=device),
    "normal_": lambda device: torch.empty(N, device=device, dtype=torch.float64).normal_(1, 2),
    "exponential_": lambda device: torch.empty(N, device=device).exponential_(),
}


def both(function) -> tuple[torch.Tensor, torch.Tensor]:
    found = []
    for device in ("musa", "cuda"):
        torch.manual_seed(7)
        getattr(torch, device).manual_seed(7)
        function(device)
        found.append(function(device).cpu())  # the second call continues the sequence
    return found[0], found[1]


@pytest.mark.parametrize("name", EQUAL)
def test_the_sequence_is_cudas_bit_for_bit(name: str) -> None:
    musa, cuda = both(EQUAL[name])
    assert musa.unique().numel() > 1
    assert torch.equal(musa, cuda)


@pytest.mark.parametrize("name", NEAR)
def test_the_sequence_is_cudas_within_the_last_digits(name: str) -> None:
    musa, cuda = both(NEAR[name])
    assert musa.unique().numel() > N // 2
    assert (musa.double() - cuda.double()).abs().max().item() <= 2e-6
