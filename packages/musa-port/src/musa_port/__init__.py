# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""CUDA sources as MUSA sources: a library, and the command `musa-port`. What is read is never changed."""

from __future__ import annotations

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
    """Some files, with all headers that lie beside them or below. Returns where the files have gone.

    Files of one name in several folders keep apart: each folder has its own in the target.
    """
    engine = _engine()
    folders: dict[Path, Path] = {}
    result = []
    for source in sources:
        place = folders.get(source.parent)
        if place is None:
            place = folders[source.parent] = target / str(len(folders))
            headers = [
                found
                for found in files.tree_sources(source.parent)
                if found.path.suffix in files.HEADER_SUFFIXES and not found.path.is_relative_to(target)
            ]
            files.write(headers, engine, place)
        files.write(files.tree_sources(source), engine, place)
        result.append(place / engine.path(source.name))
    return result


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
