# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Kernels with large blocks on mp_21, whose blocks have 28 KiB of shared memory. The emulator refuses
launches with more."""

import pytest

from tests.harness.subprocesses import run_code

pytestmark = [pytest.mark.once, pytest.mark.emulator]

_CALLS = """
import torch

torch.manual_seed(0)
assert torch.musa.get_device_properties().shared_memory_per_block == 28 << 10
for dtype in (torch.float32, torch.float64, torch.int64, torch.int8):
    for size in (9, 1000, 1500, 3000, 5000, 40000):
        x = torch.randint(-100, 100, (2, size)).to(dtype)
        there = x.to("musa")
        values, places = there.sort(stable=True)
        assert torch.equal(values.cpu(), x.sort().values), size
        assert torch.equal(there.gather(1, places), values), size
        assert torch.equal(there.topk(7).values.cpu(), x.topk(7).values), size
        assert torch.equal(there.kthvalue(5).values.cpu(), x.kthvalue(5).values), size
        assert torch.equal(there.cummax(1).values.cpu(), x.cummax(1).values), size
        assert torch.equal(there.cumsum(1).cpu(), x.cumsum(1)), size
        assert torch.equal(there[0].unique().cpu(), x[0].unique()), size
for size in (8, 3000, 40000):
    x = torch.rand(size, dtype=torch.complex128)
    torch.testing.assert_close(x.to("musa").cumsum(0).cpu(), x.cumsum(0))
    torch.testing.assert_close(x.real.to("musa").logcumsumexp(0).cpu(), x.real.logcumsumexp(0))
print("done")
"""


def test_sorts_and_scans_of_all_sizes():
    settings = {
        "MUSA_EMULATOR_ARCH": "mp_21",
        "TORCH_MUSA_OPS": "ported,host-copy",
        "TORCH_MUSA_FALLBACK": "allow",
    }
    assert run_code(_CALLS, fresh=True, **settings).strip() == "done"
