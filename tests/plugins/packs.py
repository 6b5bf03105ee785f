# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Op packs: written in Python into a directory, with the metadata that an installer would write, or built as
wheels and installed into an environment."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import sysconfig
import textwrap
import venv
from pathlib import Path

from tests.harness.subprocesses import code_of_module, run_forked, run_python


def write_pack(
    directory: Path,
    name: str,
    code: str,
    contract: str | None = "v2",
    entry: str | None = None,
    import_hook: str | None = None,
    modules: tuple[str, ...] = (),
    submodules: tuple[str, ...] = (),
    attributes: str | None = None,
    run_options: tuple[str, ...] = (),
) -> None:
    """Install a pack called `name`, whose module is `pack_<name>`, into a directory on the path.

    Args:
        contract: the declared version; None for a pack of version 1 that declares none.
        entry: the value of its entry point; its module unless given.
        import_hook: the code of a module with a function `musa_import`.
        modules, submodules, run_options: lines of the groups `torch_musa.modules.v2` and so on.
        attributes: the value in `torch_musa.attributes.v2`.
    """
    module = f"pack_{name}"
    (directory / f"{module}.py").write_text(textwrap.dedent(code))
    info = directory / f"{module}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pack-{name}\nVersion: 1.2\n")
    old = contract in ("v1", None)
    points = f"[torch_musa.plugins{'' if old else f'.{contract}'}]\n{name} = {entry or module}\n"
    if contract == "v1":
        points += f"[torch_musa.contract]\n{name} = v1\n"
    if import_hook is not None:
        (directory / f"{module}_startup.py").write_text(textwrap.dedent(import_hook))
        points += f"[torch_musa.import.v2]\n{name} = {module}_startup:musa_import\n"
    for group, lines in (("modules", modules), ("submodules", submodules), ("run_options", run_options)):
        if lines:
            points += "\n".join([f"[torch_musa.{group}.v2]", *lines, ""])
    if attributes is not None:
        points += f"[torch_musa.attributes.v2]\n{name} = {attributes}\n"
    (info / "entry_points.txt").write_text(points)


def build_wheel(project: Path, directory: Path) -> Path:
    """Builds a pack against the installed packages, from a copy, so that the tree is not changed."""
    sources = shutil.copytree(project, directory / "sources")
    command = ["-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", str(directory), str(sources)]
    done = run_python(*command, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = directory.glob("*.whl")
    return made


class Environment:
    """A virtual environment that has the packages of the current one, whose pip installs into it."""

    def __init__(self, directory: Path) -> None:
        venv.create(directory, symlinks=True)
        self.python = directory / "bin" / "python"
        purelib = self._purelib = Path(sysconfig.get_path("purelib", vars={"base": str(directory)}))
        # addsitedir, not a bare path, because editable installs of the current environment are .pth files
        # there.
        lines = [f"import site; site.addsitedir({path!r})" for path in self.inherited()]
        (purelib / "inherited.pth").write_text("\n".join(lines) + "\n")

    def _enter(self) -> str:
        place = f"sys.path.index({self.inherited()[0]!r})"
        return (
            f"import sys\nsys.path.insert({place}, {str(self._purelib)!r})\n"
            f"sys.prefix, sys.executable = {str(self.python.parents[1])!r}, {str(self.python)!r}\n"
        )

    @staticmethod
    def inherited() -> list[str]:
        return [path for path in site.getsitepackages() if os.path.isdir(path)]

    def install(self, *wheels: Path) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        command += ["--no-index", "--no-deps", "--ignore-installed"]
        subprocess.run([*command, *map(str, wheels)], check=True)

    def run(self, *arguments: str, interpreter: bool = False, **environment: str) -> str:
        """Run `-c` and code, or `-m`, a module and its arguments, and return the standard output.

        The code runs in a fork that finds the environment's packages. With `interpreter` it runs in a new
        process of the environment's own interpreter.
        """
        if interpreter:
            done = subprocess.run(
                [str(self.python), *arguments],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=300,
            )
        else:
            option, *rest = arguments
            (code,) = rest if option == "-c" else [code_of_module(*rest)]
            done = run_forked(f"{self._enter()}{code}", **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
