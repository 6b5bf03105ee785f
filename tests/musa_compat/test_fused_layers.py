# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.nn.SwishGLU and torch.nn.RoPE: results and gradients of the operators, and of formulas on the CPU."""

import functools
import inspect

import pytest
import torch

from tests.harness.subprocesses import run_code

F = torch.nn.functional


@pytest.mark.parametrize("device", ["cpu", "musa"])
def test_swish_glu_and_its_gradient(musa, device):
    x = torch.randn(3, 8, dtype=torch.float64)
    reference = x.clone().requires_grad_()
    first, second = reference[:, :4], reference[:, 4:]
    expected = first * torch.sigmoid(first) * second
    expected.sum().backward()
    got = x.to(device, torch.float32).requires_grad_()
    result = torch.nn.SwishGLU()(got)
    result.sum().backward()
    # float32 against float64
    torch.testing.assert_close(result.cpu().double(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(got.grad.cpu().double(), reference.grad, rtol=1e-5, atol=1e-6)
    assert torch.equal(F.swish_glu(got), result) and torch.equal(torch.swish_glu(got), result)


def rotated(x, angles):
    """Rotates pairs of elements half a row apart by the angles. x: (positions, batch, heads, elements)."""
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    angles = angles[:, None, None, :]
    return x * angles.cos() + turned * angles.sin()


def test_rope(musa):
    x = torch.randn(5, 2, 3, 8)
    angles = torch.randn(5, 4).repeat(1, 2)
    expected = rotated(x.double(), angles.double())
    got = torch.rope(x.to("musa"), angles.to("musa"), rotary_interleaved=False, batch_first=False)
    torch.testing.assert_close(got.cpu().double(), expected, rtol=1e-5, atol=1e-5)
    module = torch.nn.RoPE(angles, batch_first=True).to("musa")
    turned = module(x.transpose(0, 1).contiguous().to("musa"))
    assert not module.state_dict()
    torch.testing.assert_close(turned.transpose(0, 1), got)
    torch.testing.assert_close(F.rope(x.to("musa"), angles.to("musa"), False, False, False), got)
    assert "batch_first=True" in repr(module)


FLAGS = "rotary_interleaved=False, batch_first=False, multi_latent_attention=False"
# Parameters in the vendor's manual and in public programs.
SIGNATURES = {
    "torch.nn.RoPE": f"(freq_cis, {FLAGS})",
    "torch.nn.RoPE.forward": "(self, input)",
    "torch.nn.SwishGLU.forward": "(self, input)",
    "torch.rope": f"(input, freq_cis, {FLAGS})",
    "torch.swish_glu": "(input)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_the_vendors(musa, name):
    _, *path = name.split(".")
    assert str(inspect.signature(functools.reduce(getattr, path, torch))) == SIGNATURES[name]


@pytest.mark.once
@pytest.mark.slow
def test_a_compiled_function_has_one_graph(musa):
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.SwishGLU()).to("musa")
    x, angles = torch.randn(4, 8, device="musa"), torch.randn(4, 4, device="musa")
    program = lambda x: torch.rope(module(x).reshape(4, 1, 2, 4), angles)  # noqa: E731
    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), program(x))


@pytest.mark.once
def test_rope_without_the_operator_names_it_as_missing():
    code = """
    import torch
    try:
        torch.rope(torch.ones(2, 1, 1, 4, device="musa"), torch.ones(2, 4, device="musa"))
    except RuntimeError as error:
        print("torch_musa::rope" in str(error), "Fix: python -m torch_musa packs" in str(error))
    print(torch.nn.SwishGLU()(torch.ones(1, 2, device="musa")).tolist())
    """
    lines = run_code(code, TORCH_MUSA_DISABLE_PACKS="mudnn").splitlines()
    assert lines[0] == "True True" and lines[1].startswith("[[0.731")


@pytest.mark.once
def test_names_that_exist_stay():
    code = """
    import os
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    import torch
    torch.nn.SwishGLU = mine = type("Mine", (), {})
    torch.swish_glu = print
    import torch_musa
    print(torch.nn.SwishGLU is mine, torch.swish_glu is print, torch.nn.RoPE.__module__)
    """
    assert run_code(code, fresh=True) == "True True musa_compat.fused_layers\n"
