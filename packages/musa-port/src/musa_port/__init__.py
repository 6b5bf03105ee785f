# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""CUDA sources as MUSA sources: a library, and the command `musa-port`. What is read is never changed."""

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
    """All sources below a folder. Returns the target."""
    files.write(files.tree_sources(Path(folder)), _engine(), target)
    return target


def port_sources(sources: list[Path], target: Path) -> list[Path]:
    """Some files, with all headers beside them or below, and those that they include by relative paths.

    Folders keep their places to each other, so that `#include "../x.h"` is found. Returns where the files
    have gone, in their order.
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
    """Options of a compiler, in which the macros of `-D` and `-U` have the names that ported sources test."""
    engine = _engine()

    def ported(flag: str) -> str:
        found = re.fullmatch(r"(-[DU])(\w+)(=.*)?", flag, re.DOTALL)
        return f"{found[1]}{engine.name(found[2])}{found[3] or ''}" if found else flag

    return [ported(flag) for flag in flags]


def port_torch_headers(target: Path) -> Path:
    """The CUDA headers of the installed torch, and the overlay in a folder of its own. Returns the target."""
    files.write(files.default_sources(), _engine(), target)
    port_overlay(overlay_dir(target))
    return target


def overlay_dir(target: Path) -> Path:
    """Where `port_torch_headers(target)` writes the overlay.

    The overlay is the headers of torch outside its CUDA folders that test for a CUDA compiler, such as
    c10/util/Half.h and the macros of C10_HOST_DEVICE. With mcc the folder comes before torch's on the
    include path; the target comes last.
    """
    return target / "overlay"


def port_overlay(target: Path) -> Path:
    """Writes the overlay of the installed torch. Returns the target."""
    files.write(files.overlay_sources(), _engine("overlay"), target)
    return target


def include_dir() -> Path:
    """Of headers that stand in for those of torch that cannot be ported."""
    return Path(str(resources.files(__package__) / "include"))


def prelude() -> Path:
    """What ported sources are compiled with first (`-include`)."""
    return include_dir() / "prelude.h"
