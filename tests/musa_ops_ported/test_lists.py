# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Lists of tensors that one kernel cannot process together are processed one by one, on the device."""

from __future__ import annotations

import pytest

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

# As on a GPU: the host cannot address device memory, and copies to the host are an error.
_ON_A_DEVICE = {"MUSA_EMULATOR_MEMORY": "strict", "TORCH_MUSA_FALLBACK": "error", "TORCH_MUSA_OPS": None}


def test_every_foreach_operator_stays_on_the_device_for_all_kinds_of_lists(full: bool) -> None:
    printed = run_code(
        f"""
        import itertools, torch
        from tests.conformance.operators import FOREACH_OPS, Case
        from tests.conformance.comparison import outcome_of, require_same_outcome
        from tests.conformance.transfer import to_device

        def transposed(value):
            matrix = isinstance(value, torch.Tensor) and value.dim() == 2
            return value.t().contiguous().t() if matrix else value

        def judge(form, sample):
            here = to_device("cpu", sample.input, sample.args, sample.kwargs)
            there = to_device("musa", sample.input, sample.args, sample.kwargs)
            expected = outcome_of(lambda: form(here[0], *here[1], **here[2]))
            actual = outcome_of(lambda: form(there[0], *there[1], **there[2]))
            if expected.error is None:
                require_same_outcome(expected, actual, "musa")
            return expected.error is None

        compared = 0
        for op in FOREACH_OPS:
            for sample in itertools.islice(Case(op, torch.float32).samples(True), None if {full} else 4):
                # Only the first list is transposed, and one of its tensors has another dtype.
                mixed = [transposed(each) for each in sample.input]
                mixed[-1] = mixed[-1].double()
                for first in ([transposed(each) for each in sample.input], mixed):
                    sample.input = first
                    for form in (op, op.get_inplace()):
                        compared += form is not None and judge(form, sample)
        print(compared)
        """,
        **_ON_A_DEVICE,
    )
    assert int(printed.split()[-1]) > 200
