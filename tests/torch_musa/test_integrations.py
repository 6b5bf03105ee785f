# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Integrations without their packages: `import torch` imports none, and each names its package."""

from __future__ import annotations

import importlib.metadata
import importlib.util

import pytest
import torch

from tests.harness.subprocesses import run_code
from torch_musa.integrations.bitsandbytes import int8, optimizers, quantized


@pytest.mark.once
def test_importing_torch_imports_no_integration():
    code = "import sys, torch, torch_musa; print([m for m in sys.modules if 'integrations' in m])"
    assert run_code(code, fresh=True).strip() == "[]"


@pytest.mark.once
@pytest.mark.parametrize("package", ["lightning", "deepspeed", "transformers"])
def test_a_missing_package_is_named(package):
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed here, so its absence cannot be tested")
    with pytest.raises(ImportError, match=f"Fix: pip install {package}"):
        importlib.import_module(f"torch_musa.integrations.{package}")


@pytest.mark.once
def test_the_entry_point_of_bitsandbytes_is_declared():
    (entry,) = importlib.metadata.entry_points(group="bitsandbytes.backends", name="musa")
    assert entry.value == "torch_musa.integrations.bitsandbytes:register"
    entry.load()()  # without operators of bitsandbytes, no kernel is registered


def test_int8_products_are_exact_beyond_the_exact_range_of_float32():
    torch.manual_seed(1)
    a, b = (torch.randint(100, 128, (n, 3000), dtype=torch.int8) for n in (5, 4))
    exact = (a.long() @ b.long().t()).int()
    assert not torch.equal((a.float() @ b.float().t()).int(), exact)
    assert torch.equal(int8.int8_linear_matmul(a.to("musa"), b.to("musa")).cpu(), exact)
    assert torch.equal(int8.int8_linear_matmul(a.to("musa").view(1, 5, -1), b.to("musa")).cpu(), exact[None])


@pytest.mark.parametrize("count", [512, 700, 7])
def test_blocks_are_decoded_with_their_scale(count):
    torch.manual_seed(1)
    codes = torch.randint(0, 256, (count,), dtype=torch.uint8)
    scales, table = torch.rand(-(-count // 256)), torch.randn(256)
    expected = table[codes.long()] * scales.repeat_interleave(256)[:count]
    arguments = (x.to("musa") for x in (codes, scales, table))
    assert torch.equal(quantized.dequantize_blockwise(*arguments, 256, torch.float32).cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_adam_steps_as_torch_does(dtype, scale):
    torch.manual_seed(1)
    start = torch.randn(9, 5).to(dtype)
    ours, theirs = start.to("musa"), start.double().requires_grad_()
    m, v = (torch.zeros(9, 5, device="musa") for _ in range(2))
    plain = torch.optim.AdamW([theirs], lr=1e-2, weight_decay=0.1)
    for step in range(1, 4):
        gradient = torch.randn(9, 5).to(dtype)
        theirs.grad = gradient.double() * scale
        plain.step()
        numbers = (0.0, 0.0, 0.9, 0.999, 0.0, 0.0, 1e-8, 0.1, step, 1e-2, scale)
        optimizers.optimizer_update_32bit("adam", gradient.to("musa"), ours, m, v, None, *numbers)
    # Three roundings of the parameter to its dtype.
    tolerance = 1e-6 if dtype == torch.float32 else 3 * 2**-8
    torch.testing.assert_close(ours.cpu().double(), theirs.detach(), rtol=tolerance, atol=tolerance)


def test_an_unknown_optimizer_is_refused():
    p = torch.ones(2, device="musa")
    with pytest.raises(ValueError, match="'sgd' is not one of"):
        optimizers.optimizer_update_32bit("sgd", p, p, p, None, None, *([0.0] * 8), 1, 1e-2)
