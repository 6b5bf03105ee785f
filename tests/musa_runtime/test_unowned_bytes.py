# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operations write no byte between the elements of their target: another stream may be writing there.

The other stream writes before each call of the SDK that an operation makes (tests/harness/neighbours.py),
so a read of the gaps that is written back later loses bytes in every run.
"""

import itertools

import pytest
import torch

from tests.harness.neighbours import Neighbour
from tests.harness.subprocesses import run_code, run_module
from tests.musa_runtime import unowned_bytes

STEP = 31  # of the sampled runs; prime, so that the samples have every kind of target and source

pytestmark = pytest.mark.emulator


@pytest.fixture(autouse=True)
def _emulator(emulator):
    """The observer of the SDK's calls is MUPTI's, which a vendor's driver need not offer to programs."""


@pytest.mark.filterwarnings("ignore")
def test_copies_in_the_memory_and_mode_of_this_process(two_devices, full):
    *wrong, _ = unowned_bytes.failures(itertools.islice(unowned_bytes.copies(), 0, None, 1 if full else STEP))
    assert wrong == []


@pytest.mark.once
@pytest.mark.parametrize("mode", ["async", "lazy"])
@pytest.mark.parametrize("providers", ["mudnn,ported,host-copy", "host-copy"])
def test_copies_and_operators_on_discrete_memory(full, mode, providers):
    step = 1 if full else 4 * STEP
    done = run_module(
        "tests.musa_runtime.unowned_bytes",
        str(step),
        timeout=3000,
        MUSA_EMULATOR_MEMORY="strict",
        MUSA_EMULATOR_MODE=mode,
        TORCH_MUSA_OPS=providers,
        TORCH_MUSA_FALLBACK="allow",
    )
    assert done.returncode == 0, done.stderr
    wrong = [line for line in done.stdout.splitlines() if not line.endswith("cases")]
    assert wrong == []


def test_a_write_of_the_span_is_found(musa):
    storage = torch.zeros(64, device="musa")
    target = storage[::2]
    torch.musa.synchronize()
    neighbour = Neighbour(target)
    with neighbour.beside():
        span = storage.cpu()
        span[::2].fill_(1)
        storage.copy_(span)
    assert neighbour.lost_bytes() == 32 * 4


@pytest.mark.filterwarnings("ignore")
def test_a_target_whose_elements_share_memory_gets_its_values(musa):
    with musa.ops.prefer("aten::_index_put_impl_", "host-copy"):
        for expand in (lambda x: x[::2, None].expand(4, 3), lambda x: x.as_strided((3, 4), (0, 2))):
            expected, actual = torch.zeros(8), torch.zeros(8, device="musa")
            for x in (expected, actual):
                rows = torch.tensor([1], device=x.device)
                expand(x).index_put_((rows,), torch.tensor(5.0, device=x.device))
            assert torch.equal(actual.cpu(), expected)


@pytest.mark.once
def test_a_copy_moves_no_more_bytes_than_its_elements():
    code = """
        import torch
        column = torch.zeros(1 << 24, device="musa").view(4096, 4096)[:, 5]
        before = torch.musa.memory_allocated()
        torch.musa.reset_peak_memory_stats()
        column.copy_(torch.ones(4096))
        assert torch.equal(column.cpu(), torch.ones(4096))
        assert torch.musa.max_memory_allocated() - before <= 4 * column.nbytes
    """
    run_code(code, MUSA_EMULATOR_MEMORY="strict")
