# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Names that public programs use exist, except those that the list gives a reason for."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.once

LIST = yaml.safe_load((Path(__file__).parents[1] / "data" / "names_of_programs.yaml").read_text())


def exists(name: str) -> bool:
    """Whether a program can read a dotted name, after an import of the modules in it."""
    first, *rest = name.split(".")
    value, path = importlib.import_module(first), first
    for part in rest:
        path += f".{part}"
        if not hasattr(value, part):
            try:
                value = importlib.import_module(path)
            except ImportError:
                return False
        else:
            value = getattr(value, part)
    return True


def test_names_exist_unless_a_reason_is_listed(musa, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missing = [name for name in LIST["names"] if not exists(name)]
    with capsys.disabled():
        served = len(LIST["names"]) - len(missing)
        print(f"\nnames of public programs: {len(LIST['names'])}, served {served}, listed {len(missing)}")
    assert missing == sorted(LIST["listed"]) and len(missing) <= 8
    assert all(len(reason.split()) > 4 for reason in LIST["listed"].values())


def test_the_list_has_the_programs_of_each_name():
    trees = {tree for found in LIST["names"].values() for tree in found} - {"documents", "programs"}
    assert len(LIST["names"]) >= 160 and len(trees) >= 20 and all(LIST["names"].values())


@pytest.mark.parametrize("name", ["torch.musa.imaginary", "torch_musa.utils.imaginary.a", "torch.imaginary"])
def test_a_missing_name_is_noticed(name):
    assert not exists(name)
