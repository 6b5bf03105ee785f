# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ports CUDA sources to MUSA: a library, and the command `musa-port`. Input files are not modified."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path

from . import files, rules
from .engine import Engine


def _engine(name: str = "torch") -> Engine:
    return Engine(rules.load(name))


def port_folder(folder: Path, target: Path) -> Path:
    """Ports all sources below a folder. Returns the target."""
    files.write(files.tree_sources(Path(folder)), _engine(), target)
    return target


def port_sources(sources: list[Path], target: Path) -> list[Path]:
    """Ports files, the headers next to or below them, and headers that they include by relative paths.

    Relative positions of folders are kept, so that `#include "../x.h"` is found. Returns the paths of the
    results, in the order of the sources.
    """
    engine = _engine()
    sources = [source.resolve() for source in sources]
    needed = dict.fromkeys(sources)
    for folder in {source.parent for source in sources}:
        for found in files.tree_sources(folder):
            if found.path.suffix in files.HEADER_SUFFIXES and not found.path.is_relative_to(target.resolve()):
                needed[found.path.resolve()] = None
    waiting = list(needed)
    while waiting:
        for header in files.relative_includes(waiting.pop()):
            if header not in needed:
                needed[header] = None
                waiting.append(header)
    root = Path(os.path.commonpath([path.parent for path in needed]))
    files.write([files.Source(path, str(path.relative_to(root))) for path in needed], engine, target)
    return [target / engine.path(str(source.relative_to(root))) for source in sources]


def port_macros(flags: list[str]) -> list[str]:
    """Renames the macros in `-D` and `-U` options to the names that ported sources test."""
    engine = _engine()

    def ported(flag: str) -> str:
        found = re.fullmatch(r"(-[DU])(\w+)(=.*)?", flag, re.DOTALL)
        return f"{found[1]}{engine.name(found[2])}{found[3] or ''}" if found else flag

    return [ported(flag) for flag in flags]


def port_torch_headers(target: Path) -> Path:
    """Ports the CUDA headers of the installed torch, and the overlay in a subfolder. Returns the target."""
    files.write(files.default_sources(), _engine(), target)
    port_overlay(overlay_dir(target))
    return target


def overlay_dir(target: Path) -> Path:
    """Returns the folder that `port_torch_headers(target)` writes the overlay to.

    The overlay contains torch's headers outside its CUDA folders that test for a CUDA compiler, such as
    c10/util/Half.h and the macros of C10_HOST_DEVICE. For mcc this folder must precede torch's on the
    include path, and the target must follow it.
    """
    return target / "overlay"


def port_overlay(target: Path) -> Path:
    """Writes the overlay for the installed torch. Returns the target."""
    files.write(files.overlay_sources(), _engine("overlay"), target)
    return target


def include_dir() -> Path:
    """Returns the folder of replacements for torch's headers that cannot be ported."""
    return Path(str(resources.files(__package__) / "include"))


def prelude() -> Path:
    """Returns the header to include first (`-include`) in ported sources."""
    return include_dir() / "prelude.h"
