# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The umbrella and the order of providers name no pack, so that this project's packs have no privilege."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2] / "packages"
NAMES = re.compile(r"\b(mudnn|ported|mccl|musa[_-](ops[_-]\w+|amp|distributed))\b|MUDNN_|MCCL_", re.I)


def files():
    yield from sorted((ROOT / "torch-musa/src").rglob("*.py"))
    yield ROOT / "musa-runtime/csrc/registry/op_policy.cpp"


def named(text: str) -> set[str]:
    return {match.group().lower() for match in NAMES.finditer(text)}


@pytest.mark.parametrize("path", list(files()), ids=lambda path: path.name)
def test_no_pack_is_named(path):
    assert named(path.read_text()) == set()


@pytest.mark.parametrize("text", ['if name == "mudnn":', "import musa_amp", "pip install musa-ops-other"])
def test_a_name_is_noticed(text):
    assert named(text)
