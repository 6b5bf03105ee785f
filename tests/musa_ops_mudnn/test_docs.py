# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""docs/mudnn.md lists the operators of the pack; the page in the tree equals its generator's output."""

import importlib.util
from pathlib import Path

import pytest

import pages

pytestmark = pytest.mark.once

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("docs_mudnn", DOCS / "mudnn.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(musa, generator):
    committed = (DOCS / "mudnn.md").read_text(encoding="utf-8")
    assert committed == generator.page(), "Fix: python docs/mudnn.py"


def test_a_new_operator_makes_the_page_differ(generator):
    families = {"aten::cos": "pointwise", "aten::cos_": "pointwise", "aten::mm": "matmul"}
    first = dict.fromkeys(families, "mudnn")
    page = generator.render(families, first, "3.1.0")
    assert "| pointwise | 2 | cos (2) |" in page and "| matmul | 1 | mm |" in page and "3 operators" in page
    assert (
        generator.render({**families, "aten::bmm": "matmul"}, {**first, "aten::bmm": "mudnn"}, "3.1.0")
        != page
    )
    # mm is declared, but another provider comes first.
    assert generator.render(families, {**first, "aten::mm": "host"}, "3.1.0") != page


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("aten::add_.Tensor", "add"),
        ("aten::add.out", "add"),
        ("aten::_softmax", "_softmax"),
        ("aten::__and__.Scalar", "__and__"),
        ("torch_musa::rope", "torch_musa::rope"),
    ],
)
def test_overloads_are_listed_under_their_base_name(name, base):
    assert pages.base_name(name) == base
