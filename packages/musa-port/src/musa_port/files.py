# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ports trees of files into another folder. Input files are not modified."""

from __future__ import annotations

import importlib.util
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .engine import Engine, Ported

SUFFIXES = (".cu", ".cuh", ".mu", ".muh", ".h", ".hpp", ".cpp", ".cc", ".cxx", ".c", ".inl")
HEADER_SUFFIXES = (".cuh", ".muh", ".h", ".hpp", ".inl")
# The CUDA headers of a torch wheel, and their location in a PyTorch source tree.
# torch/headeronly/cuda contains the atomics since torch 2.14.
WHEEL_FOLDERS = ("c10/cuda", "ATen/cuda", "ATen/native/cuda", "torch/headeronly/cuda")
TREE_FOLDERS = (
    "c10/cuda",
    "aten/src/ATen/cuda",
    "aten/src/ATen/native/cuda",
    "aten/src/ATen/native/sparse/cuda",
    "aten/src/ATen/native/quantized/cuda",
    "aten/src/ATen/native/transformers/cuda",
    "aten/src/ATen/native/nested/cuda",
)

# torch's own headers: the overlay consists of those in these folders that test for a CUDA compiler.
OWN_FOLDERS = ("ATen", "c10", "torch/headeronly")
_NO_OVERLAY_FOLDERS = {"cuda", "hip", "cpu", "test", "xpu", "mps"}
_QUOTED_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_COMPILER_TEST = re.compile(r"\b__CUDACC__|\b__CUDA_ARCH__")
# Headers that are not ported: their tests only remove code from nvcc's host pass, and a compiler
# with a single pass for host and device (the emulator's mcc) would lose that code on the host.
NOT_IN_OVERLAY = {
    "ATen/core/boxing/KernelFunction_impl.h": "tests for nvcc in combination with the address sanitizer",
    "c10/util/TypeIndex.h": "names of types would throw instead of being computed",
    "c10/util/string_view.h": "range checks would be missing",
    "c10/util/typeid.h": "the types of nvcc's host code would not be registered",
}


class InputError(ValueError):
    """The input is missing, or its result would overwrite the input or another result."""


@dataclass(frozen=True)
class Source:
    """A file to port, and its path in the output folder."""

    path: Path
    name: str


@dataclass
class Report:
    """The result of porting a tree."""

    files: int = 0
    written: int = 0
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    doubts: list[tuple[str, int, str, str]] = field(default_factory=list)  # file, line, text, why


def _wheel_include() -> Path:
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise InputError("torch is not installed.\nFix: name a folder to port, or install torch")
    return Path(found.origin).parent / "include"


def overlay_sources() -> list[Source]:
    """Returns torch's headers outside its CUDA folders that test for a CUDA compiler.

    Always those of the installed torch, because extensions are compiled against it.
    """
    include = _wheel_include()
    sources = []
    for folder in OWN_FOLDERS:
        for source in tree_sources(include / folder, folder):
            if source.name in NOT_IN_OVERLAY or _NO_OVERLAY_FOLDERS & set(Path(source.name).parts):
                continue
            if _COMPILER_TEST.search(source.path.read_text(encoding="utf-8", errors="surrogateescape")):
                sources.append(source)
    return sources


def wheel_sources() -> list[Source]:
    """Returns the CUDA headers of the installed torch."""
    include = _wheel_include()
    present = [folder for folder in WHEEL_FOLDERS if (include / folder).is_dir()]
    sources = [source for folder in present for source in tree_sources(include / folder, folder)]
    if not sources:
        raise InputError(
            f"torch at {include.parent} has no CUDA headers.\nFix: set PYTORCH_REPO_PATH to a source tree"
        )
    return sources


def repository_sources(root: Path) -> list[Source]:
    """Returns the CUDA sources of a PyTorch source tree, under the paths used in #include."""
    present = [folder for folder in TREE_FOLDERS if (root / folder).is_dir()]
    if not present:
        raise InputError(f"{root} is not a source tree of PyTorch: it has none of {', '.join(TREE_FOLDERS)}")
    return [
        source
        for folder in present
        for source in tree_sources(root / folder, folder.removeprefix("aten/src/"))
    ]


def default_sources() -> list[Source]:
    """Returns the sources in PYTORCH_REPO_PATH if it is set, else those of the installed torch."""
    repository = os.environ.get("PYTORCH_REPO_PATH")
    return repository_sources(Path(repository)) if repository else wheel_sources()


def tree_sources(root: Path, prefix: str = "") -> list[Source]:
    """Returns all sources below a folder, or a single file."""
    if root.is_file():
        return [Source(root, root.name)]
    if not root.is_dir():
        raise InputError(f"there is nothing at {root}")
    paths = sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return [Source(path, str(Path(prefix) / path.relative_to(root))) for path in paths]


def relative_includes(path: Path) -> list[Path]:
    """Returns the resolved files that a source includes by paths relative to its folder."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    named = (path.parent / name for name in _QUOTED_INCLUDE.findall(text))
    return [file.resolve() for file in named if file.is_file()]


def port(sources: list[Source], engine: Engine) -> Iterator[tuple[Source, str, Ported]]:
    """Yields each source, its output path and its ported text.

    Raises:
        InputError: if two sources have the same output path, such as `cuda/a.cu` and `musa/a.mu`.
    """
    _refuse_clashes(sources, engine)
    for source in sources:
        text = source.path.read_text(encoding="utf-8", errors="surrogateescape")
        yield source, engine.path(source.name), engine.port(text)


def _refuse_clashes(sources: list[Source], engine: Engine) -> None:
    inputs: dict[str, list[Path]] = {}
    for source in sources:
        paths = inputs.setdefault(engine.path(source.name), [])
        if source.path.resolve() not in [path.resolve() for path in paths]:
            paths.append(source.path)
    clashes = {name: paths for name, paths in inputs.items() if len(paths) > 1}
    if clashes:
        shown = [f"  {name}: {', '.join(map(str, paths))}" for name, paths in list(clashes.items())[:20]]
        more = [f"  and {len(clashes) - 20} more"] if len(clashes) > 20 else []
        lines = [f"{len(clashes)} results would each be written by more than one input:", *shown, *more]
        lines.append("Likely cause: the input holds both CUDA sources and a port of them to MUSA.")
        raise InputError("\n".join([*lines, "Fix: port them with separate commands into separate folders"]))


def write(sources: list[Source], engine: Engine, output: Path, report: Report | None = None) -> Report:
    """Ports into a folder. Unchanged files are not written, to avoid rebuilds.

    Adds to `report` (default: a new one) and returns it.

    Raises:
        InputError: if a result would overwrite the input or another result, or be outside of the folder; no
            file is written.
    """
    report = Report() if report is None else report
    read = {source.path.resolve() for source in sources}
    for target in (output / engine.path(source.name) for source in sources):
        if not target.resolve().is_relative_to(output.resolve()):
            raise InputError(
                f"{target} would be outside of the output folder.\n"
                "Likely causes: the rules rename a path to one with '..'; a link in the output folder leads "
                "out of it.\n"
                "Fix: use rules that you trust, and an empty output folder"
            )
        if target.resolve() in read:
            raise InputError(f"{target} is read and would be written. Fix: choose another output folder")
    for _, name, ported in port(sources, engine):
        target = output / name
        add(report, name, ported)
        if target.is_file() and target.read_text(encoding="utf-8", errors="surrogateescape") == ported.text:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(ported.text, encoding="utf-8", errors="surrogateescape")
        report.written += 1
    return report


def add(report: Report, name: str, ported: Ported) -> None:
    """Adds one source to the report."""
    report.files += 1
    report.changes.update(ported.changes)
    report.doubts += [(name, doubted.line, doubted.text, doubted.why) for doubted in ported.doubts]
