# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rule on the size of C++ classes counts only methods, and refuses a class with too many."""

from __future__ import annotations

import pytest

from workspace import class_size

pytestmark = pytest.mark.once

NAME = "packages/musa-a/csrc/a.h"


def header(count: int, above: str = "") -> str:
    methods = "".join(f"  int f{number}(int x = g({number})) const;\n" for number in range(count))
    return f"#pragma once\n\n{above}class A : public B {{\n public:\n  A();\n{methods}  int x_;\n}};\n"


@pytest.mark.parametrize(
    ("members", "methods"),
    [
        ("void f(); int g() const { return h(); } int h() const;", ("f", "g", "h")),
        ("const std::string f() override { if (x) { return {}; } return y; }\n void g() final;", ("f", "g")),
        (
            "static A create(); template <class T> T get(T value = T()); virtual void run() = 0;",
            ("create", "get", "run"),
        ),
        ("void f(int); void f(double);", ("f", "f")),
        ("[[nodiscard]] bool f() noexcept(true); auto g() -> std::vector<int>;", ("f", "g")),
        ("operator bool() const { return x; } bool operator<(const A&) const; void operator()(int);", None),
        ("std::vector<std::pair<int, int>> f(std::function<void(int)> g = [] { h(); });", ("f",)),
        (
            "A(A&&) = delete; A& operator=(const A&) = delete; explicit A(int x) : x_{x}, y_(x) {} ~A();",
            (),
        ),
        ("std::function<void(int)> f; std::function<bool()> g{nullptr}; int x = h(3); int (*p)(int);", ()),
        ("friend void f(A&); using F = void(int); static_assert(sizeof(int) == 4); MACRO_OF(A);", ()),
        ('// void f();\n/* void g(); */ const char* h = "void i();";\n#define J() k()\n', ()),
        ("struct B { void f(); };\n enum class C { x, y };\n void g();", ("g",)),
    ],
)
def test_only_methods_are_counted(members: str, methods: tuple[str, ...] | None) -> None:
    found = next(
        cls for cls in class_size.classes(f"template <class T, int N>\nclass A {{ public: {members} }};")
    )
    assert found.name == "A"
    if methods is None:
        assert [name.split()[0] for name in found.methods] == ["operator"] * 3
    else:
        assert found.methods == methods


def test_a_nested_class_counts_for_itself() -> None:
    outer, inner = class_size.classes(
        "class A {\n  void f();\n  struct B {\n    void g(); void h();\n  };\n};"
    )
    assert (outer.name, outer.line, outer.methods) == ("A", 1, ("f",))
    assert (inner.name, inner.line, inner.methods) == ("B", 3, ("g", "h"))


def test_declarations_of_classes_and_enumerations_are_no_classes() -> None:
    text = "class A;\nstruct A* f();\nenum class B { x };\ntemplate <class T>\nvoid g() {}\n"
    assert list(class_size.classes(text)) == []


def test_a_class_with_too_many_methods_is_refused() -> None:
    assert class_size.check_class_sizes({NAME: header(39)}) == []
    [found] = class_size.check_class_sizes({NAME: header(40)})
    assert found.startswith(f"{NAME}:3: class A has 40 methods") and "Fix:" in found


def test_headers_of_packages_are_read_and_no_other_file() -> None:
    large = header(60)
    assert class_size.check_class_sizes({"tests/a.h": large, "packages/musa-a/csrc/a.cpp": large}) == []
    assert len(class_size.check_class_sizes({"packages/musa-a/csrc/b/c.h": large, NAME: large})) == 2


def test_an_exception_needs_a_reason_and_a_class_with_too_many_methods() -> None:
    reasoned = "// All devices.\n// 40 methods or more: the interface has 52 virtual functions.\n"
    assert class_size.check_class_sizes({NAME: header(52, reasoned)}) == []
    [found] = class_size.check_class_sizes({NAME: header(52, "// 40 methods or more:\n")})
    assert "has 52 methods" in found
    [found] = class_size.check_class_sizes({NAME: header(30, reasoned)})
    assert "remove the exception" in found
