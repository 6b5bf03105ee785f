# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""In strict memory mode, only SDK calls access device memory; any other access by the host is stopped."""

import pytest

from tests.harness.emulator import emulator_or_skip
from tests.harness.subprocesses import run_code, run_forked

# These tests do not depend on the execution mode of this process.
pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def _emulator_only(musa):
    emulator_or_skip()


def test_the_device_says_that_the_host_cannot_address_it():
    out = run_code(
        "import torch; print(torch.musa.get_device_properties(0).is_integrated)",
        MUSA_EMULATOR_MEMORY="strict",
    )
    assert out.strip() in ("False", "0")


@pytest.mark.parametrize("mode", ["inline", "async", "lazy"])
def test_training_runs(mode):
    out = run_code(
        """
        import torch
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                     torch.nn.Linear(144, 3)).to("musa")
        optimizer = torch.optim.Adam(module.parameters())
        x, y = torch.randn(8, 1, 8, 8, device="musa"), torch.randint(0, 3, (8,), device="musa")
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(losses[-1] < losses[0])
        """,
        MUSA_EMULATOR_MEMORY="strict",
        MUSA_EMULATOR_MODE=mode,
        TORCH_MUSA_FALLBACK="allow",
    )
    assert out.strip() == "True"


_TOUCH = """
import ctypes, torch
x = torch.ones(1024, device="musa")
torch.musa.synchronize()
print("before", flush=True)
print(ctypes.c_float.from_address(x.data_ptr()).value, flush=True)
"""


def test_host_code_that_accesses_device_memory_is_stopped_with_a_report():
    done = run_forked(_TOUCH, MUSA_EMULATOR_MEMORY="strict")
    assert "before" in done.stdout
    assert "1.0" not in done.stdout
    assert done.returncode != 0
    assert "device" in done.stderr.lower(), done.stderr


def test_the_same_code_runs_if_the_host_can_address_device_memory():
    assert "1.0" in run_code(_TOUCH, MUSA_EMULATOR_MEMORY="")


_OPERATIONS = [
    "x.view(2, 2, 4).permute(2, 0, 1)[1:].sum()",
    "x.clone().resize_(64)",
    "torch.view_as_real(x.to(torch.complex64))",
    "x.to_sparse().index_select(0, torch.tensor([2, 0], device='musa'))",
    "x.to_sparse().unsqueeze(0)",
    "x[torch.tensor([0, 2], device='musa')]",
    "torch.bincount(x.long().view(-1))",
    "torch.nested.nested_tensor([x, x[:2]]) * 2",
    "torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()",
    "x.clone().untyped_storage().resize_(4096)",
    "torch.searchsorted(x.view(-1), x)",
    "torch.unique(x, return_inverse=True)",
    "torch.histc(x)",
    "torch.repeat_interleave(x, 2)",
    "torch.split(x, torch.tensor([1, 3]).tolist())",
    "repr(x)",
    "x.tolist()",
    "hash(x) and x.nonzero()",
    "torch.equal(x, x.clone())",
    "torch.nn.functional.ctc_loss(torch.randn(5, 1, 4, device='musa').log_softmax(2),"
    " torch.tensor([[1, 2]], device='musa'), torch.tensor([5]), torch.tensor([2]))",
    "torch.linalg.svd(x)",
    "x.index_fill(0, torch.tensor([1], device='musa'), 2.0)",
    "torch.nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1, device='musa'), torch.tensor([3, 2]))",
    "torch.multinomial(x.softmax(1), 2)",
    "torch.randperm(10, device='musa')",
    "torch.distributions.Gamma(x + 1, x + 1).sample()",
    "torch._foreach_add([x, x], 1.0)",
    "torch.fft.ifft(x).conj() * 2",
]


def test_operations_of_every_kind_do_not_access_device_memory_on_the_host():
    lines = ["import torch", "x = torch.arange(16.0, device='musa').view(4, 4)"]
    for operation in _OPERATIONS:
        # The last printed line names the stopped operation.
        lines += [f"print({operation!r}, flush=True)", f"y = {operation}", "torch.musa.synchronize()"]
    out = run_code("\n".join(lines), MUSA_EMULATOR_MEMORY="strict", TORCH_MUSA_FALLBACK="allow")
    assert len(out.splitlines()) == len(_OPERATIONS)


def test_gradients_of_sparse_products_do_not_access_device_memory_on_the_host():
    run_code(
        """
        import torch
        for reduce in ("sum", "mean", "amax"):
            a = torch.eye(4).to_sparse_csr().to("musa").requires_grad_()
            b = torch.rand(4, 4, device="musa", requires_grad=True)
            torch.sparse.mm(a, b, reduce).sum().backward()
            assert torch.isfinite(b.grad).all()
        """,
        MUSA_EMULATOR_MEMORY="strict",
        TORCH_MUSA_FALLBACK="allow",
    )
