# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pages about the pack equal the output of their generators."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

DOCS = Path(__file__).parents[2] / "docs"


def generator(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_NAMES_CPU_KERNELS = pytest.mark.host_addressable("the page's order names torch's CPU kernels")


@pytest.mark.parametrize("name", [pytest.param("ported", marks=_NAMES_CPU_KERNELS), "adding_an_operator"])
def test_the_page_is_current(musa, name):
    committed = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert committed == generator(name).page(), f"Fix: python docs/{name}.py"


def test_the_list_counts_the_operators_for_which_the_pack_comes_first():
    families = {"aten::tril": "triangular", "aten::tril_": "triangular", "aten::exp": "unary"}
    page = generator("ported").render(families, {**dict.fromkeys(families, "ported"), "aten::exp": "mudnn"})
    assert "| triangular | 2 | tril (2) |" in page and "unary" not in page and "2 operators" in page


def test_missing_code_is_noticed():
    walkthrough = generator("adding_an_operator")
    with pytest.raises(ValueError):
        walkthrough.function("csrc/kernels/TriangularOps.mu", "void no_such_kernel(")
    with pytest.raises(ValueError):
        walkthrough.entry("TriangularOps.mu", "no_such_operator")
