# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""On a device of discrete memory, only the listed operators are computed on copies in host memory, each for a
known reason."""

from __future__ import annotations

import pytest
import torch

from tests.conformance import host_copies
from tests.harness.subprocesses import run_module

pytestmark = pytest.mark.once

MOST_OPERATORS = 3


def stale(ops: list[str]) -> list[str]:
    """Operators that torch does not have, or that no reason explains."""
    known = {str(schema.name) + (f".{schema.overload_name}" if schema.overload_name else "")
             for schema in torch._C._jit_get_all_schemas()}  # fmt: skip
    return [op for op in ops if op not in known or host_copies.reason(op) is None]


def base_names(ops: list[str]) -> set[str]:
    """The operators without their overloads: in-place and out= forms are not counted separately."""
    return {op.removeprefix("aten::").split(".")[0].strip("_") for op in ops}


def test_few_operators_are_copied_each_for_a_known_reason():
    ops = host_copies.listed()
    assert ops and stale(ops) == [] and len(base_names(ops)) <= MOST_OPERATORS


def test_a_stale_entry_is_found():
    assert stale(["aten::linalg_eig", "aten::relu", "aten::gone"]) == ["aten::relu", "aten::gone"]


def test_forms_of_an_operator_count_once():
    assert base_names(["aten::addmm", "aten::addmm_", "aten::addmm.out", "aten::geqrf"]) == {"addmm", "geqrf"}


EVERY = "40"  # of 800 operators


@pytest.mark.parametrize(
    "setting", [{}, {"TORCH_MUSA_OPS": "aten::abs*=host-copy"}], ids=["default", "a copy"]
)
def test_no_other_operator_is_copied(setting):
    done = run_module("tests.conformance.host_copies", EVERY, MUSA_EMULATOR_MEMORY="strict", **setting)
    assert done.returncode == 0, done.stderr
    assert ("not listed:\n" in done.stdout) == (not setting), done.stdout
