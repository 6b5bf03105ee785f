# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Kernels give the same results in any order of the threads of a block: see with_barriers.py.

After a missing barrier a thread reads values that other threads have not written yet. In the order forward,
in which the other tests run, these are the values of later threads only. test_races.py finds every such
access, but takes long.
"""

from __future__ import annotations

import pytest

from tests.harness.subprocesses import run_module

pytestmark = pytest.mark.once


# Scans and copies have other kernels for memory that the host cannot address.
@pytest.mark.parametrize("memory", ["shared", "strict"])
@pytest.mark.parametrize("order", ["reverse", pytest.param("random:1", marks=pytest.mark.full)])
def test_results_do_not_depend_on_the_order_of_threads(order: str, memory: str) -> None:
    done = run_module(
        "tests.musa_ops_ported.with_barriers",
        MUSA_EMULATOR_SCHEDULE=order,
        MUSA_EMULATOR_MEMORY=memory,
        TORCH_MUSA_OPS="ported,host-copy",
        TORCH_MUSA_FALLBACK="error",
    )
    assert done.returncode == 0 and "compared" in done.stdout, done.stderr[-5000:]
