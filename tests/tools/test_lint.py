# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each hook of .pre-commit-config.yaml refuses a bad file, and the patterns leave good lines alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from workspace import ROOT, lint, tree_rules

pytestmark = pytest.mark.once

HOOKS = {
    hook["id"]: hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repository["hooks"]
}
HEAD = "# SPDX-License-Identifier: BSD-3-Clause\n# Copyright (c) torch_musa contributors\n"


def refuses(name: str, text: str) -> bool:
    """Whether a pattern refuses the text of a file, as pre-commit judges it."""
    hook = HOOKS[name]
    arguments = hook.get("args", [])
    flags = re.MULTILINE | re.DOTALL if "--multiline" in arguments else 0
    pattern = re.compile(hook["entry"], flags)
    texts = [text] if flags else text.splitlines()
    return any(map(pattern.search, texts)) != ("--negate" in arguments)


BAD = {
    "spdx": ["x = 1\n", "#include <x>\n" * 5 + HEAD],
    "file-length": [HEAD + "x = 1\n" * 800],
    "pinned-actions": ["uses: actions/checkout@v5", "      - uses: a/b@main"],
    "machine-path": ["see /home/someone/x", "open('/tmp/x')"],
    "torch-in-cmake": ["find_package(Torch REQUIRED)", "  find_dependency( Torch HINTS x)"],
    "memory-marks": [
        "pytestmark = pytest.mark.host_addressable",
        "pytestmark = [once, mark.host_addressable('why')]",
        "@pytest.mark.host_addressable",
        "@pytest.mark.host_addressable('')",
        "x = param(1, marks=mark.host_addressable)",
    ],
    "integrated": ["  if (device.integrated != 0) {", "props.is_integrated"],
    "conditional-assertion": ["    assert a == 1 if b else 2"],
    "one-label": ['TORCH_CHECK(false, "Wrong.\\nCure: none");', "To mend it: wait"],
    "plain-english": [
        "An interrupted load starts anew.",
        "There is no memory at hand.",
        "It is copied from pinned memory, so that nobody waits.",
        "Freed by whoever comes last.",
        "The receiver lets go of the storage.",
        "After a second the call is given up.",
        "Copies that which changed.",
        "It bends to the dtype of tensors with dimensions.",
        "The event is polled in vain.",
        "Copied for want of a kernel.",
        "The allocator bookkeeps blocks.",
        "The watchdog is told of the failure.",
        "The tensor lies in device memory.",
        "The allocator knows of the stream.",
        "Serves instead of what is missing.",
    ],
}
GOOD = {
    "spdx": [HEAD, "#!/usr/bin/env python3\n" + HEAD, ""],
    "file-length": [HEAD + "x = 1\n" * 798],
    "machine-path": ["x = 'a/tmp/b', '/usr/local/musa'"],
    "pinned-actions": ["uses: a/b@v1.2.3", "uses: ./.github/actions/setup"],
    "torch-in-cmake": ["# Not find_package(Torch)", "find_package(TorchVision)"],
    "memory-marks": ["@pytest.mark.host_addressable('an order of CPU kernels')"],
    "conditional-assertion": ["assert a == (1 if b else 2)", "assert a == b if c else a < b"],
    "integrated": ["disintegrated", "void integrate();"],
    "one-label": ["raise ValueError('Wrong. Fix: the cure: none')"],
    "plain-english": ["NOBODY = 65534", "Whether a stream is being captured.", "What is a pack? A wheel."],
}


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), cases(BAD))
def test_a_pattern_refuses_a_bad_line(name: str, text: str) -> None:
    assert refuses(name, text)


@pytest.mark.parametrize(("name", "text"), cases(GOOD))
def test_a_pattern_leaves_a_good_line_alone(name: str, text: str) -> None:
    assert not refuses(name, text)


@pytest.mark.parametrize(
    ("uses", "cycles"),
    [
        ({"a/x.h": "b/y.h", "b/y.h": "a/z.h", "a/z.h": ""}, ["csrc: folders"]),
        ({"a/x.h": "b/y.h", "b/y.h": "", "b/z.h": "c/z.h", "c/z.h": "a/x.h"}, ["csrc: folders"]),
        ({"a/p/x.h": "../q/y.h", "a/q/y.h": "", "a/q/z.h": "../p/x.h"}, ["csrc/a: folders"]),
        ({"a/x.h": "y.h", "y.h": "a/z.h", "a/z.h": ""}, ["csrc: folders"]),
        ({"a/x.h": "r/y.h", "pack_sdk/r/y.h": "a/z.h", "a/z.h": ""}, ["csrc: folders"]),
        ({"a/x.h": "b/y.h", "b/y.h": "vector", "c/z.h": "a/x.h"}, []),
        ({"a/x.h": "p/y.h", "a/p/y.h": "a/z.h", "a/z.h": ""}, []),
        ({"a/x.h": "", "a/x.cpp": "a/y.h", "a/y.h": "a/x.h"}, ["csrc: files"]),
        ({"a/x.h": "a/y.h", "a/x.cpp": "a/x.h", "a/y.h": "", "a/y.cpp": "a/y.h"}, []),
    ],
)
def test_folders_and_files_that_include_each_other_are_refused(
    uses: dict[str, str], cycles: list[str]
) -> None:
    texts = {f"packages/one/csrc/{name}": f"#include <{used}>\n" for name, used in uses.items()}
    found = tree_rules.check_includes(texts)
    assert len(found) == len(cycles)
    assert all(cycle in line for cycle, line in zip(cycles, found, strict=True))


BAD_FILES = {
    "bad.py": "import tomllib\nx = {'a':1} # recieve",  # codespell:ignore recieve
    "long.py": "x = 1\n" * 801,
    "bad.cpp": "int  x ;\n",
    "docker/bad.Dockerfile": "FROM debian:12\nRUN sudo true\n",
    ".github/workflows/bad.yml": "on: push\njobs: {a: {steps: []}}\n# uses: a/b@main\n",
    ".github/actions/bad/action.yml": "name: bad\n",
    ".github/ISSUE_TEMPLATE/bad.yml": "name: bad\n",
    "bad.toml": "x = [\n",
    "bad.yaml": "x: [\n",
    "bad.json": "{\n",
    "bad.md": "<<<<<<< HEAD\nSee /home/someone, at hand.\nCure: none ",
    "bad.cmake": "find_package(Torch)\n",
    "tests/bad.py": "@pytest.mark.host_addressable\ndef test():\n    assert a == 1 if b else 2\n",
    "packages/one/csrc/a/x.h": "#include <b/y.h>\nbool x = device.integrated;\n",
    "packages/one/csrc/b/y.h": "#include <a/x.h>\n",
}


def test_every_hook_refuses_a_bad_tree(tmp_path: Path) -> None:
    for name in (".pre-commit-config.yaml", ".clang-format", "pyproject.toml", "docker/.hadolint.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for path in ROOT.glob("packages/*/src/*/__init__.py"):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True)
        copy.write_text("import musa_compat\n" if path.parent.name == "musa_amp" else "")
    for name, text in BAD_FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in ("init -q", "add ."):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    done = subprocess.run(
        [lint.pre_commit(), "run", "--all-files"], cwd=tmp_path, capture_output=True, text=True
    )
    refused = set(re.findall(r"^- hook id: ([\w-]+)$", done.stdout, re.MULTILINE))
    assert {name for name, hook in HOOKS.items() if "stages" not in hook} - refused == set(), done.stdout
    assert (
        "folders include each other" in done.stdout
        and "files include each other" in done.stdout
        and "musa_amp -> musa_compat" in done.stdout
    )


CONSTRUCTOR = """
class Sums {
 public:
  explicit Sums(const Tensor& values) : values_(values), size_{3} {
    %s
  }
  void fill() {
    for_each(size_, [=] __device__(int64_t i) { use(i); });
  }
};
"""


def test_a_device_lambda_in_a_constructor_is_refused() -> None:
    bad = CONSTRUCTOR % "for_each(size_, [=] __device__(int64_t i) { use(i); });"
    found = tree_rules.check_device_lambdas({"packages/one/csrc/kernels/Sums.mu": bad})
    assert found == [
        "packages/one/csrc/kernels/Sums.mu: constructor of Sums: move the device lambda to a function"
    ]


@pytest.mark.parametrize("head", ["[&]<typename T>()", "[&](auto number)"])
def test_a_device_lambda_in_a_generic_lambda_is_refused(head: str) -> None:
    launch = "for_each(9, [=] __device__(int64_t i) { use(i); });"
    bad = f"void fill() {{\n  with_type({head} {{\n    {launch}\n  }});\n}}\n"
    found = tree_rules.check_device_lambdas({"packages/one/csrc/kernels/Sums.mu": bad})
    assert found == [
        "packages/one/csrc/kernels/Sums.mu:2: generic lambda: move the device lambda to a function template"
    ]


def test_a_device_lambda_in_another_function_is_accepted() -> None:
    good = CONSTRUCTOR % "fill();"
    assert tree_rules.check_device_lambdas({"packages/one/csrc/kernels/Sums.mu": good}) == []
