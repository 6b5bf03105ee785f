# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The generated reference is complete: public names of torch.musa, exported C++ functions, operators."""

from __future__ import annotations

import re
import types

import pytest
import reference_cpp
import reference_operators
import reference_python
import torch

from workspace import docs

pytestmark = pytest.mark.once

DIRECTIVE = re.compile(r"^`{3,}\{py:(?:class|function|data)\} (\w+)", re.MULTILINE)
# A declaration, at the beginning of a line, of a function that other libraries may call.
EXPORTED = re.compile(r"^C10_MUSA_API (?:[\w:<>*&,]+ )+?[*&]?(\w+)\(", re.MULTILINE)


def sections(text):
    """The part of the page of each module."""
    return {part.split("\n", 1)[0]: part for part in re.split(r"(?m)^## ", text)[1:]}


def missing(module, text):
    """Public names of a module that are missing in its part of the page."""
    names = [
        name
        for name in reference_python.public_names(module)
        if not hasattr(getattr(module, name), "__path__")
    ]
    described = {*DIRECTIVE.findall(text), *re.findall(r"`torch\.musa\.(\w+)`", text)}
    return [name for name in names if name not in described]


def test_every_public_name_of_torch_musa_is_in_the_reference():
    musa = torch.musa
    parts = sections(reference_python.page())
    modules = reference_python.submodules(musa)
    assert len(reference_python.public_names(musa)) > 100 and len(modules) >= 10
    assert [name for name in missing(musa, parts["torch.musa"]) if name not in modules] == []
    for name in modules:
        assert missing(getattr(musa, name), parts[f"torch.musa.{name}"]) == [], name


def test_a_name_without_an_entry_is_noticed():
    module = types.ModuleType("example")
    module.here, module.gone = len, max
    module.__all__ = ["here", "gone"]
    text = reference_python.module_section("example", module, ["here"])
    assert missing(module, text) == ["gone"]


def test_docstrings_become_lists():
    def function(x, device=None):
        """Returns x; see :func:`other`.

        Args:
            x (Tensor): of any shape,
                in two lines.
            device (int, optional): the device.

        Raises:
            ValueError: if x is empty.
        """

    text = reference_python.markdown(function.__doc__)
    assert text.startswith("Returns x; see `other`.")
    assert "* `x` (Tensor): of any shape,\n  in two lines.\n* `device` (int, optional): the device." in text
    assert "**Raises**\n\n* `ValueError`: if x is empty." in text


def test_signatures_have_types_without_quotes():
    def function(x: torch.Tensor, *, size: int | None = None) -> list[str]: ...

    class Kind:
        def __init__(self, name: str = "a") -> None: ...

    signature = reference_python.signature
    assert signature(function) == "(x: torch.Tensor, *, size: int | None = None) -> list[str]"
    assert signature(Kind) == "(name: str = 'a')"


def unlisted(headers, page):
    """Exported functions of headers, outside of namespaces `detail`, that the page does not declare."""
    public = [re.sub(r"(?s)namespace detail \{.*?\} // namespace detail", "", text) for text in headers]
    return [name for text in public for name in EXPORTED.findall(text) if not re.search(rf"\b{name}\(", page)]


def test_every_exported_function_is_in_the_reference():
    headers = [(reference_cpp.HEADERS / name).read_text() for name in reference_cpp.headers()]
    assert sum(len(EXPORTED.findall(text)) for text in headers) > 60
    assert unlisted(headers, reference_cpp.page()) == []


def test_an_exported_function_without_an_entry_is_noticed():
    header = "C10_MUSA_API int first(int x);\nC10_MUSA_API const std::string& second();\n"
    assert unlisted([header], "int first(int x);") == ["second"]


def test_headers_are_read():
    text = """
#define CHECK(x) \\
  do { } while (0)
namespace a { namespace detail { int hidden(); }
// A stream; see `b`.
//
//   B b;
class C10_MUSA_API B final : public C {
 public:
  enum Kind { ONE, TWO };
  explicit B(int x) : x_(x), y_{0} { if (x) { f("}"); } }
  // Waits.
  bool query() const;
  int size = 0; // in bytes
 private:
  int x_;
};
template <typename T>
T twice(T x, std::vector<int> y = {1, 2}) { return x; }
} // namespace a
static int internal;
"""
    found = reference_cpp.Reader(text).read()
    assert [(declaration.scope, declaration.text) for declaration in found] == [
        (("a",), "class B final : public C"),
        (("a", "B"), "enum Kind { ONE, TWO }"),
        (("a", "B"), "explicit B(int x)"),
        (("a", "B"), "bool query() const"),
        (("a", "B"), "int size = 0"),
        (("a",), "template <typename T> T twice(T x, std::vector<int> y = {1, 2})"),
    ]
    comments = [declaration.comment for declaration in found]
    assert comments[0] == "A stream; see `b`.\n\n  B b;" and comments[3:5] == ["Waits.", "in bytes"]
    assert reference_cpp.commented(comments[0]) == "A stream; see `b`.\n\n\n```cpp\nB b;\n```"
    assert reference_cpp.commented("order:\n  a_  first") == "order:\n\n```text\na_  first\n```"


def test_the_table_has_a_row_for_each_operator():
    row = {"op": "aten::abs", "provider": "mudnn", "candidates": ["mudnn", "host"], "calls": 0}
    page = reference_operators.render([row, {**row, "op": "aten::abs_", "provider": "none"}])
    assert "| `aten::abs` | mudnn | mudnn, host |\n| `aten::abs_` | none |" in page
    assert "By provider: `mudnn` 1, `none` 1." in page


def test_every_generator_exists():
    for name in docs.REFERENCE:
        assert (docs.ROOT / "docs" / f"{name}.py").is_file()
