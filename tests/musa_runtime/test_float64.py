# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A device without float64: the host computes it exactly, and kernels of the device get no such call. The
emulator refuses them (MUSA_EMULATOR_FLOAT64=0), so that one that reaches the device fails."""

from __future__ import annotations

import json

import pytest

from tests.harness.subprocesses import run_code

# Every interpreter of these tests sets its own device.
pytestmark = [pytest.mark.once, pytest.mark.emulator, pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported")]

WITHOUT = {"MUSA_EMULATOR_MEMORY": "strict", "MUSA_EMULATOR_FLOAT64": "0", "TORCH_MUSA_OPS": None}

_PROGRAM = """
import json, warnings
import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
torch.manual_seed(0)
a, b = torch.rand(8, 8, dtype=torch.float64), torch.rand(8, 8, dtype=torch.float64)
z, steps = torch.view_as_complex(torch.rand(8, 4, 2, dtype=torch.float64)), torch.arange(8)
image, weight = torch.rand(1, 2, 6, 6, dtype=torch.float64), torch.rand(3, 2, 3, 3, dtype=torch.float64)


def step(a):
    a = a.clone().requires_grad_()
    F.cross_entropy(a @ a.t() + a.relu(), steps.to(a.device)).backward()
    return a.grad


def default(a):
    torch.set_default_dtype(torch.float64)
    try:
        return steps.to(a.device) / 3 + torch.arange(0.0, 8.0, device=a.device)
    finally:
        torch.set_default_dtype(torch.float32)


def adam(a):
    parameter = torch.nn.Parameter(a.clone())
    optimizer = torch.optim.Adam([parameter], foreach=True)
    parameter.grad = a * 2
    optimizer.step()
    return parameter.detach()


CALLS = {
    "add": lambda a, b: a + b,
    "scalar": lambda a, b: a * 1.5 + 1,
    "mm": lambda a, b: a @ b,
    "conv2d": lambda a, b: F.conv2d(image.to(a.device), weight.to(a.device)),
    "softmax": lambda a, b: a.softmax(1),
    "sum": lambda a, b: a.sum(1),
    "sum of float32 as float64": lambda a, b: a.float().sum(0, dtype=torch.float64),
    "sort": lambda a, b: a.sort().values,
    "cat": lambda a, b: torch.cat([a, b]),
    "index": lambda a, b: a[steps.to(a.device)],
    "index_put": lambda a, b: a.clone().index_put_((steps.to(a.device),), b),
    "where": lambda a, b: torch.where(a > b, a, b),
    "comparison": lambda a, b: a > b,
    "fill": lambda a, b: torch.full((3,), 2.5, dtype=torch.float64, device=a.device),
    "linspace": lambda a, b: torch.linspace(0, 1, 5, dtype=torch.float64, device=a.device),
    "transposed": lambda a, b: a.t().contiguous(),
    "to float32": lambda a, b: a.float(),
    "from float32": lambda a, b: a.float().double(),
    "strided copy": lambda a, b: a.clone()[:, ::2].copy_(b[:, 1::2]),
    "complex": lambda a, b: z.to(a.device).exp() * 2,
    "foreach": lambda a, b: torch.stack(torch._foreach_mul([a, b], 2.0)),
    "out": lambda a, b: torch.mul(a, b, out=torch.empty_like(a)),
    "in place": lambda a, b: a.clone().mul_(b),
    "gradient": lambda a, b: step(a),
    "default dtype": lambda a, b: default(a),
    "adam": lambda a, b: adam(a),
    "coo": lambda a, b: a.to_sparse() @ b,
    "csr": lambda a, b: a.to_sparse_csr() @ b,
    "sampled": lambda a, b: torch.sparse.sampled_addmm(a.to_sparse_csr(), a, b).to_dense(),
    "rfft": lambda a, b: torch.fft.rfft(a),
    "solve": lambda a, b: torch.linalg.solve(a + 8 * torch.eye(8).to(a), b),
}
found = {}
for name, call in CALLS.items():
    expected = call(a, b)
    try:
        result = call(a.to("musa"), b.to("musa"))
        torch.musa.synchronize()
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
        continue
    same = result.dtype == expected.dtype and torch.allclose(result.cpu(), expected, rtol=1e-12, atol=1e-14)
    found[name] = "right" if same else f"{result} instead of {expected}"
try:
    drawn = torch.randn(1000, dtype=torch.float64, device="musa")
    plausible = drawn.dtype == torch.float64 and abs(drawn.mean().item()) < 0.2
    found["randn"] = "right" if plausible else str(drawn)
except Exception as error:
    found["randn"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


def test_float64_is_exact_on_a_device_without_it(musa):
    found = json.loads(run_code(_PROGRAM, TORCH_MUSA_FALLBACK="allow", **WITHOUT))
    assert len(found) > 25
    assert {name: outcome for name, outcome in found.items() if outcome != "right"} == {}


def test_the_emulated_device_refuses_float64(musa):
    """Known bad: a program that says that the device has float64 reaches the device with every call."""
    found = json.loads(run_code(_PROGRAM, TORCH_MUSA_FALLBACK="allow", TORCH_MUSA_FLOAT64="1", **WITHOUT))
    refused = [name for name, outcome in found.items() if outcome != "right"]
    assert {"add", "mm", "softmax", "sum", "sort", "cat", "foreach"} <= set(refused), found


def test_calls_without_float64_stay_on_the_device(musa):
    run_code(
        """
        import torch
        import torch.nn.functional as F
        a = torch.rand(8, 8, device="musa", requires_grad=True)
        loss = F.cross_entropy(a @ a.t() * 2.0 + a.relu(), torch.arange(8, device="musa"))
        loss.backward()
        torch.optim.Adam([a], foreach=True).step()
        assert a.grad.isfinite().all()
        """,
        TORCH_MUSA_FALLBACK="error",
        **WITHOUT,
    )


def test_a_refused_call_names_the_device_as_the_cause(musa):
    message = run_code(
        """
        import torch
        try:
            torch.ones(3, dtype=torch.float64, device="musa").exp()
        except RuntimeError as error:
            print(error)
        """,
        TORCH_MUSA_FALLBACK="error",
        **WITHOUT,
    )
    assert "Fix: use float32, because this device does not compute with float64" in message


def test_an_owner_declares_a_device_without_float64(musa):
    """A vendor's SDK declares nothing."""
    counts = json.loads(
        run_code(
            """
            import json, torch
            from musa_runtime.capabilities import computes_float64
            x = torch.ones(3, dtype=torch.float64, device="musa").exp()
            rows = torch.musa.ops.fallback_report()
            print(json.dumps([computes_float64(), x.tolist(), str(rows)]))
            """,
            MUSA_EMULATOR_MEMORY="strict",
            TORCH_MUSA_FLOAT64="0",
            TORCH_MUSA_FALLBACK="allow",
            TORCH_MUSA_OPS=None,
        )
    )
    assert not counts[0] and counts[1] == [2.718281828459045] * 3 and "aten::exp" in counts[2]
