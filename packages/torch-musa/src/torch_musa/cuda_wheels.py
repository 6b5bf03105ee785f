# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finds installed packages whose libraries need a CUDA build of torch, beside a torch without CUDA.

The package index's default wheels of torchaudio and its like are linked to `libc10_cuda.so`. Beside another
build of torch they fail at import, and so do packages that import them if they are installed.
"""

import mmap
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import torch

from musa_runtime import installation

from .checks import Warn

LIBRARIES = (b"libc10_cuda.so", b"libtorch_cuda.so", b"libcudart.so")
TORCH = re.compile(r"torch\b(?!-)")  # a requirement of torch itself
LIMIT_S = 120


def candidates() -> Iterator[tuple[metadata.Distribution, metadata.PackagePath, str]]:
    """Yields (distribution, library, name of the CUDA library) per package with a library linked to CUDA."""
    for dist in metadata.distributions():
        if not any(TORCH.match(requirement) for requirement in dist.requires or ()):
            continue
        for file in dist.files or ():
            library = file.suffix == ".so" and file.parts[0].isidentifier()
            needed = library and _linked_to_cuda(dist.locate_file(file))
            if needed:
                yield dist, file, needed
                break


def _linked_to_cuda(path: Any) -> str | None:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return next((name.decode() for name in LIBRARIES if content.find(name + b"\0") >= 0), None)
    except (OSError, ValueError):  # removed since it was installed, or empty
        return None


def import_error(package: str) -> str | None:
    """Returns the last line of the error with which a new process fails to import the package, or None."""
    command = [sys.executable, "-c", f"import {package}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return None  # it does not fail
    lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
    return lines[-1] if done.returncode else None


def check() -> str:
    """The doctor's check."""
    if torch.version.cuda is not None:
        return "torch is built with CUDA"
    found = list(candidates())
    broken = []
    for dist, file, needed in found:
        if error := import_error(file.parts[0]):
            text = f"{dist.name} {dist.version} cannot be imported: {error}\n{os.fspath(file)} needs {needed}"
            broken.append((dist.name, text))
    if broken:
        names = " ".join(name for name, _ in broken)
        raise Warn(
            "\n".join(text for _, text in broken),
            f"packages that are built for torch {torch.__version__}; others fail because these are present",
            f"{installation.pip()} uninstall --yes {names}",
            "the package index's default wheel is built for CUDA. PyTorch's index for the CPU has wheels for "
            "this torch, which can be installed with --no-deps afterwards",
        )
    return ", ".join(f"{dist.name} {dist.version}" for dist, *_ in found) or "none linked to CUDA"
