# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds a shared library with ninja."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from musa_runtime import installation, switches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_RULES = """ninja_required_version = 1.3

rule cxx
  command = {cxx} -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule c
  command = {c} -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule musa
  command = {musa} -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = {link}
"""


def build(
    folder: Path,
    target: Path,
    compile_c: Sequence[str],
    compile_cxx: Sequence[str],
    compile_musa: Sequence[str],
    link: Sequence[str],
    sources: Sequence[Path],
    is_kernel: Callable[[Path], bool],
    verbose: bool,
) -> None:
    """Compiles changed sources with MAX_JOBS jobs, and links them.

    Raises:
        RuntimeError: if ninja is missing, or a command failed; the message contains its output.
    """
    ninja = shutil.which("ninja")
    if ninja is None:
        raise RuntimeError(
            "building extensions needs ninja, which is not on PATH.\n"
            "Likely causes: it is not installed, or the environment's bin folder is not on PATH.\n"
            f"Fix: {installation.pip()} install ninja"
        )
    head, *rest = link
    command = f"{shlex.quote(head)} $in {_joined(rest)} -o $out"
    compilers = {"c": _joined(compile_c), "cxx": _joined(compile_cxx), "musa": _joined(compile_musa)}
    lines = [_RULES.format(**compilers, link=command)]
    objects = []
    for number, source in enumerate(sources):
        made = folder / f"{Path(source).stem}_{number}.o"
        rule = "musa" if is_kernel(source) else "c" if Path(source).suffix == ".c" else "cxx"
        lines.append(f"build {_path(made)}: {rule} {_path(source)}")
        objects.append(_path(made))
    lines += [f"build {_path(target)}: link {' '.join(objects)}", f"default {_path(target)}", ""]
    text = "\n".join(lines)
    file = folder / "build.ninja"
    if not file.is_file() or file.read_text() != text:
        file.write_text(text)
    jobs = switches.count("MAX_JOBS", 0, least=1)
    done = subprocess.run(
        [ninja, *(["-v"] if verbose else []), *(["-j", str(jobs)] if jobs else [])],
        cwd=folder,
        text=True,
        stdout=None if verbose else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"building {target.name} failed (in {folder}):\n{done.stdout or 'see above'}")


def _joined(words: Iterable[object]) -> str:
    return shlex.join(str(word) for word in words).replace("$", "$$")


def _path(path: Path) -> str:
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
