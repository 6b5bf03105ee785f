# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators that read only metadata are never computed on copies in host memory, and never wait.

torch calls some of them where an exception ends the process.
"""

import pytest
import torch

from tests.harness.subprocesses import run_code, run_module

FEWEST = 130  # operators that the sweep must have called


@pytest.fixture(autouse=True)
def _emulator(emulator):
    """Strict memory is a mode of the emulator."""


@pytest.mark.once
def test_no_operator_of_torch_that_reads_metadata_is_served_by_copies():
    done = run_module(
        "tests.musa_runtime.metadata_operators", MUSA_EMULATOR_MEMORY="strict", TORCH_MUSA_FALLBACK="allow"
    )
    assert done.returncode == 0, done.stderr
    *copied, counted = done.stdout.splitlines()
    assert copied == []
    assert int(counted.split()[0]) >= FEWEST


@pytest.mark.once
def test_a_served_copy_is_reported():
    code = """
        import torch
        from tests.musa_runtime.metadata_operators import copied_calls
        x = torch.eye(4, device="musa")
        before = copied_calls("aten::linalg_eig")
        torch.linalg.eig(x)
        print(copied_calls("aten::linalg_eig") - before)
    """
    assert run_code(code, MUSA_EMULATOR_MEMORY="strict", TORCH_MUSA_FALLBACK="allow").strip() == "1"


@pytest.mark.once
@pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported")
@pytest.mark.parametrize("memory", ["strict", ""])
def test_layouts_with_gradients_where_copies_are_errors(memory):
    """Autograd reads the metadata of its inputs in functions that must not throw."""
    code = """
        import torch
        x = torch.eye(4, device="musa").requires_grad_()
        n = torch.nested.as_nested_tensor([x, x[:2]])
        assert n.requires_grad and n.grad_fn is not None and [p.shape[0] for p in n.unbind()] == [4, 2]
        for make in (
            lambda: n * 2,
            lambda: n.sum(),
            lambda: torch.sparse_coo_tensor(torch.tensor([[0], [1]], device="musa"), x[0, :1], (2, 2)) * 2,
            lambda: x.to_sparse() * 2,
            lambda: x.to_sparse_csr() * 2,
            lambda: x.to_sparse().coalesce().values(),
        ):
            try:
                make()
            except RuntimeError:
                pass  # a computation that may not be copied, or that torch has no kernel for
        print("alive")
    """
    out = run_code(code, MUSA_EMULATOR_MEMORY=memory, TORCH_MUSA_FALLBACK="error")
    assert out.splitlines()[-1] == "alive"


def test_metadata_is_read_while_work_is_queued(musa):
    sparse = torch.eye(4, device="musa").to_sparse()
    musa.synchronize()
    before = musa.get_sync_debug_mode()
    graph = musa.MUSAGraph()
    with musa.graph(graph):
        assert (sparse._nnz(), sparse.sparse_dim(), sparse.dense_dim()) == (4, 2, 0)
        assert sparse.is_coalesced() and not sparse.is_pinned()
    assert musa.get_sync_debug_mode() == before
    graph.replay()


def test_views_of_one_memory_are_the_same_set(musa):
    x = torch.zeros(4, device="musa")
    assert x.view(4).is_set_to(x)
    assert not x[1:].is_set_to(x)
    assert not torch.zeros(4, device="musa").is_set_to(x)
