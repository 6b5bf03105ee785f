# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Autocast around and in compiled functions, and random numbers: the same seed gives the same numbers, also
in gradients and recomputed regions. Inductor's numbers differ from eager mode's on every device.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.harness.skips import needs_torch
from tests.musa_compile.comparison import assert_same

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa", "compiler")]


@pytest.mark.parametrize("owner", ["torch", "torch.musa.amp"])
def test_autocast_in_a_function(backend, owner):
    if owner != "torch":
        needs_torch("2.13", "the tracing of autocast's checks")
    model = nn.Linear(8, 8).to("musa")

    def f(x):
        if owner == "torch":
            region = torch.autocast("musa", dtype=torch.bfloat16)
        else:
            region = torch.musa.amp.autocast(dtype=torch.bfloat16)
        with region:
            return model(x).relu()

    x = torch.randn(4, 8, device="musa")
    result = torch.compile(f, backend=backend, fullgraph=True)(x)
    assert result.dtype == torch.bfloat16
    assert_same(result, f(x), 2e-2)  # bfloat16 has 8 bits


def test_autocast_around_a_function(backend):
    compiled = torch.compile(nn.Linear(8, 8).to("musa"), backend=backend, fullgraph=True)
    x = torch.randn(4, 8, device="musa")
    dtypes = [compiled(x).dtype]
    with torch.autocast("musa", dtype=torch.float16):
        dtypes.append(compiled(x).dtype)
    dtypes.append(compiled(x).dtype)
    assert dtypes == [torch.float32, torch.float16, torch.float32]


def test_a_seed_repeats_dropout(backend):
    compiled = torch.compile(lambda x: F.dropout(x, 0.5), backend=backend, fullgraph=True)
    x = torch.ones(1000, device="musa")
    torch.manual_seed(3)
    first, second = compiled(x).cpu(), compiled(x).cpu()
    torch.manual_seed(3)
    assert torch.equal(compiled(x).cpu(), first)
    assert not torch.equal(first, second)
    # 1000 draws: 0.4 and 0.6 are six standard deviations away.
    assert 0.4 < (first == 0).float().mean() < 0.6
    if backend != "inductor":
        torch.manual_seed(3)
        assert torch.equal(F.dropout(x, 0.5).cpu(), first)


def test_gradients_of_dropout_use_its_mask(backend):
    x = torch.ones(1000, device="musa", requires_grad=True)
    y = torch.compile(lambda x: F.dropout(x, 0.5) * 2, backend=backend)(x)
    y.sum().backward()
    assert_same(x.grad, y)
    assert 0 < (y == 0).sum() < 1000


def test_a_seed_repeats_every_random_operator(backend):
    def f(x):
        uniform = torch.rand_like(x) + torch.bernoulli(torch.full((4, 4), 0.5, device=x.device))
        integers = torch.randint(0, 5, (4, 4), device=x.device) + torch.randperm(4, device=x.device)
        return uniform + integers + torch.randn(4, 4, device=x.device)

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    x = torch.ones(4, 4, device="musa")
    results = []
    for seed in (1, 1, 2):
        torch.musa.manual_seed(seed)
        results.append(compiled(x).cpu())
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_a_generator_is_an_argument(backend):
    generator = torch.Generator(device="musa")

    def f(x):
        return x + torch.rand(4, device="musa", generator=generator)

    compiled = torch.compile(f, backend=backend)
    x = torch.ones(4, device="musa")
    generator.manual_seed(5)
    first, second = compiled(x).cpu(), compiled(x).cpu()
    generator.manual_seed(5)
    assert torch.equal(compiled(x).cpu(), first) and not torch.equal(first, second)


@pytest.mark.compiled
def test_recomputed_regions_draw_the_numbers_of_the_forward(backend):
    needs_torch("2.13", "register_graphsafe_rng_device_type")

    def block(x):
        return F.dropout(x, 0.5) * x

    def f(x):
        return checkpoint(block, x, use_reentrant=False)

    x = (torch.rand(4000, device="musa") + 1).requires_grad_()
    torch.manual_seed(1)
    y = torch.compile(f, backend=backend, fullgraph=True)(x)
    y.sum().backward()
    # y is 2 x^2 where the number was kept, else 0.
    assert_same(x.grad, 2 * y / x)
    assert 0 < (y == 0).sum() < 4000


def test_a_recomputed_layer_has_the_gradient_of_the_kept_numbers(backend):
    """exp is its own derivative, so the gradient of a bias is the sum of the numbers that dropout kept."""
    needs_torch("2.13", "register_graphsafe_rng_device_type")
    layer = nn.Linear(64, 64).to("musa")

    def block(x):
        return F.dropout(layer(x).exp(), 0.5)

    def f(x):
        return checkpoint(block, x, use_reentrant=False)

    x = torch.randn(16, 64, device="musa")
    y = torch.compile(f, backend=backend, fullgraph=True)(x)
    y.sum().backward()
    assert_same(layer.bias.grad, y.sum(0))
    assert 0 < (y == 0).sum() < y.numel()


def test_a_seed_set_in_a_function(backend):
    def f(x):
        torch.manual_seed(7)
        return x + torch.rand(3, device="musa")

    compiled = torch.compile(f, backend=backend)
    x = torch.ones(3, device="musa")
    assert torch.equal(compiled(x).cpu(), compiled(x).cpu())


def test_the_state_of_the_generator_in_a_function(backend):
    def f(x):
        state = torch.musa.get_rng_state()
        first = torch.rand(3, device="musa")
        torch.musa.set_rng_state(state)
        return first + x, torch.rand(3, device="musa") + x

    first, second = torch.compile(f, backend=backend)(torch.ones(3, device="musa"))
    assert torch.equal(first.cpu(), second.cpu())
