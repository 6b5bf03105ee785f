# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Rules of this tree that ruff lacks: SPDX lines, file length, torch in CMake, no path of one machine, marks,
one label for fixes, no merge left half done, the size of C++ classes, no circles of folders or modules, one
version, and plain English."""

import ast
import re
import subprocess
from pathlib import Path

from workspace.circles import check_circles
from workspace.class_size import check_class_sizes
from workspace.prose import check_prose
from workspace.versions import check_versions

MAX_LINES = 800
SOURCE_SUFFIXES = {".py", ".cpp", ".cc", ".c", ".h", ".hpp", ".mu", ".muh"}
SPDX = ("SPDX-License-Identifier: BSD-3-Clause", "Copyright (c) torch_musa contributors")
CMAKE_SUFFIXES = {".cmake", ".in"}
# It fails beside a CUDA build of torch without a CUDA toolkit; TorchWheel.cmake takes its place.
TORCH_CONFIG = re.compile(r"^[^#]*\bfind_(package|dependency)\s*\(\s*(Torch|Caffe2)\b", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:work|tmp|root|home|Users)/\w")
# Messages name what helps by one word, so that a user finds it in any of them.
OTHER_LABEL = re.compile(r"(?:\\n|\b)(Cure|Remedy|Solution|To (?:mend|fix) it)" + ":")
# Lines with which git marks both sides of a conflict. A row of seven equals signs underlines titles as well.
CONFLICT = re.compile(r"^(?:<{7}|>{7}) .*")
# What no line of any file has, and what is said of it; the groups of the match are filled in.
LINE_RULES = (
    (MACHINE_PATH, "a path that exists on one machine only: {0}..."),
    (OTHER_LABEL, "'{1}:' in a message or comment; the label is 'Fix:'"),
    (CONFLICT, "a merge was left half done: {0}"),
)
# A mark takes a test out of the strict leg, which stands for a GPU: no module does that as a whole.
MEMORY_MARK = "host_addressable"
CONDITIONAL_ASSERTION = re.compile(r"^\s*assert .* else ", re.MULTILINE)
CANNOT_FAIL = "this assertion holds whenever the condition does not; put the two values in parentheses"


def tracked_files(root: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        root / name for name in sorted(set(listed.stdout.split("\0"))) if name and (root / name).is_file()
    ]


def check_text(name: str, text: str) -> list[str]:
    """The rules a file breaks, each as ``name:line: what``."""
    suffix = Path(name).suffix
    lines = text.splitlines()
    found = []
    if suffix in SOURCE_SUFFIXES:
        if lines and not all(any(line in head for head in lines[:4]) for line in SPDX):
            found.append(f"{name}:1: the two SPDX lines are missing from the top: {' / '.join(SPDX)}")
        if len(lines) > MAX_LINES:
            found.append(f"{name}:{MAX_LINES}: {len(lines)} lines; split it, the limit is {MAX_LINES}")
    if Path(name).name == "CMakeLists.txt" or suffix in CMAKE_SUFFIXES:
        found += [
            f"{name}:{number}: find_package(Torch) fails beside CUDA builds of torch; link musa::torch"
            for number, line in enumerate(lines, 1)
            if TORCH_CONFIG.search(line)
        ]
    found += [
        f"{name}:{number}: {message.format(match.group(0), *match.groups())}"
        for pattern, message in LINE_RULES
        for number, line in enumerate(lines, 1)
        if (match := pattern.search(line))
    ]
    if suffix == ".py" and MEMORY_MARK in text:
        found += [f"{name}:{line}: {what}" for line, what in check_memory_marks(text)]
    if suffix == ".py" and CONDITIONAL_ASSERTION.search(text):
        found += [f"{name}:{line}: {CANNOT_FAIL}" for line in assertions_of_constants(text)]
    return found


def assertions_of_constants(text: str) -> list[int]:
    """Lines with `assert x == a if condition else b`, where b is a constant: it is compared with nothing."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []  # ruff reports it
    tests = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    constants = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict)
    return [
        test.lineno for test in tests if isinstance(test, ast.IfExp) and isinstance(test.orelse, constants)
    ]


def check_memory_marks(text: str) -> list[tuple[int, str]]:
    """Marks that cover a whole module, and marks without a reason, each with its line."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []  # ruff reports it
    nodes = list(ast.walk(tree))
    marks = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == MEMORY_MARK]
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    module_wide = {
        id(inner)
        for node in nodes
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        for target in getattr(node, "targets", None) or [node.target]
        if isinstance(target, ast.Name) and target.id == "pytestmark" and node.value is not None
        for inner in ast.walk(node.value)
    }
    found = []
    for mark in marks:
        call = calls.get(id(mark))
        if id(mark) in module_wide:
            found.append((mark.lineno, f"{MEMORY_MARK} marks all tests of a module; mark single tests"))
        elif call is None or not has_reason(call):
            found.append((mark.lineno, f'{MEMORY_MARK} without a reason: {MEMORY_MARK}("why it needs this")'))
    return found


def has_reason(call: ast.Call) -> bool:
    return (
        len(call.args) == 1
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
        and bool(call.args[0].value.strip())
    )


def check_tree(root: Path) -> list[str]:
    found = []
    texts = {}
    for path in tracked_files(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # an image or another binary file has no lines to check
        texts[path.relative_to(root).as_posix()] = text
    for name, text in texts.items():
        found += check_text(name, text)
    for check in (check_class_sizes, check_circles, check_versions, check_prose):
        found += check(texts)
    return found
