# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The list of operators that are computed on copies in host memory on a device of discrete memory: each has a
current reason, and the operators that users need most are not in it."""

from __future__ import annotations

import json

import pytest
import torch

from tests.conformance import host_copies

pytestmark = pytest.mark.once

# Every network needs these, in floating-point dtypes alone (the list has the other dtypes).
NEVER = {"aten::_softmax", "aten::native_layer_norm", "aten::convolution_overrideable", "aten::add.Tensor"}

MOST_OPERATORS = 40


def recorded() -> dict[str, dict]:
    return json.loads(host_copies.COUNTS_FILE.read_text(encoding="utf-8"))


def stale(rows: dict[str, dict]) -> list[str]:
    """Operators that torch does not have, or whose recorded reason differs from that of the rules."""
    known = {str(schema.name) + (f".{schema.overload_name}" if schema.overload_name else "")
             for schema in torch._C._jit_get_all_schemas()}  # fmt: skip
    return [op for op, row in rows.items() if op not in known or row["reason"] != host_copies.reason(op)]


def test_each_operator_exists_and_has_the_reason_of_the_rules():
    assert recorded() and stale(recorded()) == []


def test_a_stale_entry_is_found():
    good = {"calls": 1, "reason": host_copies.reason("aten::_fft_c2c")}
    wrong = {"calls": 1, "reason": "no pack has kernels of linear algebra"}
    rows = {"aten::_fft_c2c": good, "aten::_linalg_svd": wrong, "aten::gone": good}
    assert stale(rows) == ["aten::_linalg_svd", "aten::gone"]


def base_names(rows: dict[str, dict]) -> set[str]:
    """The operators without their overloads: in-place and out= forms are not counted separately."""
    return {op.removeprefix("aten::").split(".")[0].rstrip("_") for op in rows}


def test_fewer_than_forty_operators_are_copied_each_for_a_known_reason():
    rows = recorded()
    assert len(base_names(rows)) < MOST_OPERATORS
    assert [op for op, row in rows.items() if row["reason"] == host_copies.NOT_EXAMINED] == []


def test_forms_of_an_operator_count_once():
    rows = ("aten::addmm", "aten::addmm_", "aten::addmm.out", "aten::_fft_c2c")
    assert base_names({op: {} for op in rows}) == {"addmm", "_fft_c2c"}


def test_operators_that_networks_need_are_not_copied():
    assert NEVER.isdisjoint(recorded())
