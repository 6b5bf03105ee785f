# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Scientific programs compute every operator on the device, where the host cannot address device memory."""

from __future__ import annotations

import pytest

from tests.harness.subprocesses import run_module

PROGRAMS = ("gpytorch", "torch_geometric", "neuraloperator", "spectrograms")


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_operator_is_computed_on_copies(name):
    done = run_module(
        "tests.ecosystem.programs.without_copies",
        name,
        MUSA_EMULATOR_MEMORY="strict",
        TORCH_MUSA_FALLBACK="error",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "copies:", done.stdout
