# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""No size, count or offset near 2^31, 2^32, 2^63 or 2^64 wraps: every function of the SDK refuses it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.musa_emulator import sdk

pytestmark = pytest.mark.once

LIBRARIES = [str(sdk.HOME / "lib" / name) for name in ("libmusart.so", "libmusa.so")]


@pytest.mark.parametrize(
    ("mode", "memory"), [("inline", ""), ("async", ""), ("lazy", ""), ("async", "strict")]
)
def test_sizes_that_do_not_fit_are_refused(mode: str, memory: str) -> None:
    settings = {"MUSA_EMULATOR_MODE": mode, **({"MUSA_EMULATOR_MEMORY": memory} if memory else {})}
    done = subprocess.run(
        [sys.executable, "-m", "tests.musa_emulator.sizes", *LIBRARIES],
        env=sdk.clean_environment(**settings),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=sdk.ROOT,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    found = json.loads(done.stdout)
    assert found["accepted"] == []
    assert found["refused"] == [], "the same call with a usual size succeeds"
    assert found["left"] == 0
    assert found["functions"] >= 60
    assert found["calls"] >= 6000
