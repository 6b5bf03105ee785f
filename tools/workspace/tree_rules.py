# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Rules of this tree that no linter has: one version, neither folders nor files of a csrc that include each
other, and no device lambda in a constructor or a generic lambda.

A hook of .pre-commit-config.yaml runs this module.
"""

import graphlib
import posixpath
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

from . import ROOT
from .versions import check_versions

_SOURCE = re.compile(r"(packages/[^/]+/csrc)/(.+\.(?:h|hpp|cpp|cc|c|inc|mu|muh))")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_OWN_FILES = "."  # the files directly in csrc
_INCLUDE_ROOTS = (
    "pack_sdk",
    "include",
)  # folders of a csrc whose headers are included by their names below it

# For each level, a folder or csrc itself: its subfolders, and the subfolders that each of them includes.
Levels = dict[str, dict[str, set[str]]]


def tracked_files(root: Path) -> list[Path]:
    """Returns the files that git has or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    names = sorted({*listed.stdout.split("\0")} - {""})
    return [root / name for name in names if (root / name).is_file()]


def _included_file(user: str, included: str, files: dict[str, str]) -> str | None:
    """Returns the name below csrc of a file that another one includes; None for a file of another package."""
    folders = [*map(str, PurePosixPath(user).parents), *_INCLUDE_ROOTS]
    candidates = (posixpath.normpath(f"{folder}/{included}") for folder in folders)
    return next((name for name in candidates if name in files), None)


def folder_levels(csrc: str, files: dict[str, str]) -> Levels:
    """Returns the includes between subfolders of each folder. files: names below csrc, and their texts.

    A folder and its subfolders may include each other, because they are one part. The files directly in csrc
    and csrc's subfolders may not.
    """
    levels: Levels = {}
    for user, text in files.items():
        for included in _INCLUDE.findall(text):
            used = _included_file(user, included, files) or user
            user_folder, used_folder = (PurePosixPath(name).parent.parts for name in (user, used))
            common = posixpath.commonpath([f"/{'/'.join(parts)}" for parts in (user_folder, used_folder)])
            depth = len(PurePosixPath(common).parts) - 1
            nodes = [(*parts, _OWN_FILES)[depth] for parts in (user_folder, used_folder)]
            if nodes[0] != nodes[1] and not (depth and _OWN_FILES in nodes):
                level = levels.setdefault(posixpath.normpath(csrc + common), {})
                level.setdefault(nodes[0], set()).add(nodes[1])
    return levels


def unit_includes(csrc: str, files: dict[str, str]) -> dict[str, set[str]]:
    """Returns the units that each unit includes. A unit is a header with the source file of its name."""
    includes: dict[str, set[str]] = {}
    for user, text in files.items():
        unit = posixpath.splitext(user)[0]
        for included in _INCLUDE.findall(text):
            used = posixpath.splitext(_included_file(user, included, files) or user)[0]
            if used != unit:
                includes.setdefault(unit, set()).add(used)
    return includes


def check_includes(texts: dict[str, str]) -> list[str]:
    """Returns a line for each csrc whose files, and each folder whose subfolders, include each other in a
    cycle."""
    trees: dict[str, dict[str, str]] = {}
    for name, text in texts.items():
        if match := _SOURCE.fullmatch(name):
            trees.setdefault(match[1], {})[match[2]] = text
    found = []
    for csrc, files in trees.items():
        try:
            graphlib.TopologicalSorter(unit_includes(csrc, files)).prepare()
        except graphlib.CycleError as error:
            found.append(f"{csrc}: files include each other: {' <- '.join(error.args[1])}")
        for folder, includes in folder_levels(csrc, files).items():
            try:
                graphlib.TopologicalSorter(includes).prepare()
            except graphlib.CycleError as error:
                found.append(f"{folder}: folders include each other: {' <- '.join(error.args[1])}")
    return found


def _body(text: str, start: int) -> str:
    """Returns the body that begins after `start`: its bracket, unlike an initializer's, follows a space."""
    begin = text.find(" {", start) + 1
    depth = 0
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[begin:place]
    return ""


def check_device_lambdas(texts: dict[str, str]) -> list[str]:
    """Returns a line for each device lambda in a constructor or a generic lambda.

    nvcc refuses these, and clang, which compiles the device pass here, accepts them.
    """
    found = []
    for name, text in texts.items():
        if not name.endswith((".mu", ".muh")):
            continue
        for match in re.finditer(r"^[ \t]*(?:class|struct) (\w+)(?=[^;{]* \{)", text, re.MULTILINE):
            members = _body(text, match.end())
            constructor = rf"^[ \t]*(?:explicit )?{match[1]}\((?=[^;]*\{{)"
            for start in re.finditer(constructor, members, re.MULTILINE):
                if "] __device__" in _body(members, start.end()):
                    found.append(f"{name}: constructor of {match[1]}: move the device lambda to a function")
        # `auto` parameters make a lambda generic as well.
        for match in re.finditer(r"\[[^\]\n]*\](?:<typename \w+|\([^)]*\bauto\b)", text):
            if "] __device__" in _body(text, match.end()):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{line}: generic lambda: move the device lambda to a function template")
    return found


def check_tree(root: Path) -> list[str]:
    texts = {}
    for path in tracked_files(root):
        try:
            texts[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # an image or another binary file has no lines to check
    return check_versions(texts) + check_includes(texts) + check_device_lambdas(texts)


if __name__ == "__main__":
    problems = check_tree(ROOT)
    print("\n".join(problems))
    sys.exit(bool(problems))
