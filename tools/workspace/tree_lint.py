# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Rules of this tree that ruff lacks: SPDX lines, file length, torch in CMake, no path of one machine, and no
circles of folders or modules."""

import re
import subprocess
from pathlib import Path

from workspace.circles import check_circles

MAX_LINES = 800
SOURCE_SUFFIXES = {".py", ".cpp", ".cc", ".c", ".h", ".hpp", ".mu", ".muh"}
SPDX = ("SPDX-License-Identifier: BSD-3-Clause", "Copyright (c) torch_musa contributors")
CMAKE_SUFFIXES = {".cmake", ".in"}
# It fails beside a CUDA build of torch without a CUDA toolkit; TorchWheel.cmake takes its place.
TORCH_CONFIG = re.compile(r"^[^#]*\bfind_(package|dependency)\s*\(\s*(Torch|Caffe2)\b", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:work|tmp|root|home|Users)/\w")


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
        f"{name}:{number}: a path that exists on one machine only: {match.group(0)}..."
        for number, line in enumerate(lines, 1)
        if (match := MACHINE_PATH.search(line))
    ]
    return found


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
    return found + check_circles(texts)
