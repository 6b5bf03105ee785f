# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Results and changed arguments are those of the references in float64: dtypes, layouts, sizes, and warps of
32 and 128."""

from __future__ import annotations

import pytest
import torch

from tests.harness.subprocesses import run_code
from tests.musa_ops_serving import references
from tests.musa_ops_serving.cases import CASES, DTYPES, Case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_equal_the_reference(ops, case: Case):
    for dtype in DTYPES:
        for layout in case.layouts:
            case.check("musa", dtype, layout)


@pytest.mark.parametrize("op", sorted({case.op for case in CASES}))
def test_the_check_notices_another_result(ops, op, monkeypatch):
    """Of a reference that returns, or writes, something else."""
    case = next(case for case in CASES if case.op == op and case.name not in ("no tokens", "no heads"))
    reference = getattr(references, op)

    def other(*arguments, **options):
        results = reference(*arguments, **options)
        changed = [arguments[place] for place in case.changed] or [results]
        for result in changed if isinstance(changed[0], torch.Tensor) else changed[0]:
            result.copy_(result.double() + 1)
        return results

    monkeypatch.setattr(references, op, other)
    with pytest.raises(AssertionError, match="Tensor-likes are not"):
        case.check("musa", torch.float32)


SWEEP = """
import torch
from tests.musa_ops_serving import references
from tests.musa_ops_serving.cases import CASES
properties = torch.musa.get_device_properties()
for case in CASES:
    for dtype in (torch.float16, torch.float32):
        case.check("musa", dtype)
print(properties.warp_size, properties.shared_memory_per_block >> 10)
"""


@pytest.mark.once
@pytest.mark.emulator
@pytest.mark.parametrize(
    ("architecture", "schedule", "printed"),
    [("mp_21", "reverse", "128 28"), ("mp_22", "random:1", "128 72"), ("mp_31", "reverse", "32 192")],
)
def test_every_architecture_and_order_of_threads_has_the_same_results(architecture, schedule, printed):
    """mp_21 has 28 KiB of shared memory for a block, so that attention takes smaller tiles."""
    out = run_code(SWEEP, fresh=True, MUSA_EMULATOR_ARCH=architecture, MUSA_EMULATOR_SCHEDULE=schedule)
    assert out.strip() == printed
