# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rule against folders that include each other and modules that import each other."""

import subprocess

import pytest

from workspace import circles, tree_lint

pytestmark = pytest.mark.once


def csrc(files):
    """A tree of one package. files: names below csrc, and the names that each file includes."""
    return {
        f"packages/one/csrc/{name}.h": "".join(f"#include <{used}.h>\n" for used in uses.split())
        for name, uses in files.items()
    }


def package(files):
    """A tree of one Python package, `one`. files: names of modules, and their texts."""
    return {f"packages/one/src/one/{name}.py": text for name, text in files.items()}


@pytest.mark.parametrize(
    ("files", "steps"),
    [
        (csrc({"a/x": "b/y", "b/y": "a/z", "a/z": ""}), ["a/x.h:1 uses b/y.h", "b/y.h:1 uses a/z.h"]),
        (
            csrc({"a/x": "b/y", "b/y": "", "b/z": "c/z", "c/z": "a/x"}),
            ["a/x.h:1 uses b/y.h", "b/z.h:1 uses c/z.h", "c/z.h:1 uses a/x.h"],
        ),
        # A file below a folder counts as part of that folder.
        (csrc({"a/x": "b/y", "b/y": "", "b/in/z": "a/x"}), ["a/x.h:1 uses b/y.h", "b/in/z.h:1 uses a/x.h"]),
        (csrc({"a/b/x": "a/c/y", "a/c/y": "a/b/x"}), ["a/b/x.h:1 uses a/c/y.h", "a/c/y.h:1 uses a/b/x.h"]),
        # Names may start from the file's own folder or one above it.
        (csrc({"a/b/x": "c/y", "a/c/y": "../b/x"}), ["a/b/x.h:1 uses a/c/y.h", "a/c/y.h:1 uses a/b/x.h"]),
        (csrc({"x": "a/y", "a/y": "z", "z": ""}), ["x.h:1 uses a/y.h", "a/y.h:1 uses z.h"]),
    ],
    ids=["two", "three", "below", "inside", "relative", "csrc itself"],
)
def test_folders_that_include_each_other_are_refused_with_their_files(files, steps):
    [found] = circles.check_circles(files)
    assert found.split(": folders include each other: ")[1].split("; ") == steps


@pytest.mark.parametrize(
    "files",
    [
        csrc({"a/x": "b/y c/z", "b/y": "c/z", "c/z": ""}),
        csrc({"a/x": "a/in/y", "a/in/y": "a/z", "a/z": ""}),
        csrc({"a/x": "a/y", "a/y": "a/x"}),
        csrc({"a/x": "vector b/missing", "b/y": "a/x"}),
        {**csrc({"a/x": "b/y"}), "packages/two/csrc/b/y.h": "#include <a/x.h>\n"},
        csrc({}),
    ],
    ids=["layers", "a folder and its part", "one folder", "other headers", "two packages", "nothing"],
)
def test_folders_in_layers_are_left_alone(files):
    assert circles.check_circles(files) == []


@pytest.mark.parametrize(
    ("files", "steps"),
    [
        (
            package({"a": "from . import b\n", "b": "def f():\n    from .a import x\n"}),
            ["one/a.py:1 uses one/b.py", "one/b.py:2 uses one/a.py"],
        ),
        (
            package({"a": "import one.b\n", "b": "from one import c\n", "c": "from .a import x\n"}),
            ["one/a.py:1 uses one/b.py", "one/b.py:1 uses one/c.py", "one/c.py:1 uses one/a.py"],
        ),
        (
            package({"__init__": "x = 1\nfrom .a import y\n", "a": "from . import x\ny = x\n"}),
            ["one/__init__.py:2 uses one/a.py", "one/a.py:1 uses one/__init__.py"],
        ),
        (
            package({"a": "from .inner import b\n", "inner/b": "from .. import a\n", "inner/__init__": ""}),
            ["one/a.py:1 uses one/inner/b.py", "one/inner/b.py:1 uses one/a.py"],
        ),
    ],
    ids=["in a function", "three", "the package itself", "a package in it"],
)
def test_modules_that_import_each_other_are_refused_with_their_files(files, steps):
    [found] = circles.check_circles(files)
    assert found.split(": modules import each other: ")[1].split("; ") == steps


@pytest.mark.parametrize(
    "files",
    [
        package({"a": "from . import b, c\n", "b": "from . import c\n", "c": "import os\n"}),
        # A compiled module has no source here.
        package({"__init__": "from . import a\n", "a": "from . import _C\n"}),
        package({"a": "import a\nfrom b import a\n", "b": "from . import a\n"}),
    ],
    ids=["layers", "compiled", "names of other packages"],
)
def test_modules_in_layers_are_left_alone(files):
    assert circles.check_circles(files) == []


def test_the_tree_lint_reports_the_circles(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    head = "// SPDX-License-Identifier: BSD-3-Clause\n// Copyright (c) torch_musa contributors\n"
    for name, text in csrc({"a/x": "b/y", "b/y": "a/x"}).items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(head + text)
    [found] = tree_lint.check_tree(tmp_path)
    assert "a/x.h:3 uses b/y.h; b/y.h:3 uses a/x.h" in found
