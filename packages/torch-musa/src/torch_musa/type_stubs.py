# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa stubs`: writes type information for `torch.musa` and `torch.backends.musa`.

torch_musa adds these modules to torch at run time, and type checkers and editors do not run programs. They
find the modules in `torch-stubs`, a partial stub package (PEP 561) in the folder that torch is installed in.

The wheel does not contain `torch-stubs`, because pyright 1.1.395 to 1.1.414 at least, and editors based on
it, ignore the .pyi files of a package that has a partial stub package: `torch.float32` would be unknown.
Therefore `torch-stubs` also has copies of torch's own .pyi files, which are made from the installed torch.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path

from musa_runtime.errors import MusaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

PACKAGE = "torch-stubs"
# The file that identifies a package that this module has written.
MARK = "written_by_torch_musa.txt"


def write(folder: Path, torch_folder: Path, modules: Mapping[str, str]) -> Path:
    """Writes `torch-stubs` into a folder, and replaces one that an earlier call has written.

    Args:
        folder (Path): a folder in which type checkers search for packages.
        torch_folder (Path): the folder of the package torch.
        modules (mapping of str to str): the names of packs' modules in `torch.musa`, and the modules that
            implement them: `{"foo": "foo_pack.module"}`.

    Returns:
        Path: the folder of the stub package.

    Raises:
        MusaError: if the folder cannot be written, or has a `torch-stubs` of another origin.
    """
    target = _checked(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".torch-stubs-", dir=folder) as temporary:
            made = Path(temporary) / PACKAGE
            for file in sorted(torch_folder.rglob("*.pyi")):
                _copy(file, made / file.relative_to(torch_folder))
            own = Path(__file__).parent / "stubs"
            for file in sorted(own.rglob("*.pyi")):
                _copy(file, made / file.relative_to(own))
            _add_modules(made / "musa", modules)
            (made / "py.typed").write_text("partial\n", encoding="utf-8")
            text = "Written by `python -m torch_musa stubs`; --remove removes it.\n"
            (made / MARK).write_text(text, encoding="utf-8")
            if target.exists():
                target.rename(Path(temporary) / "old")
            made.rename(target)
    except OSError as error:
        raise MusaError(
            f"{target} cannot be written: {error}\n"
            "Likely cause: the environment belongs to another user, or is read-only.\n"
            "Fix: python -m torch_musa stubs --folder FOLDER, with a folder that the type checker searches, "
            "such as one of PYTHONPATH"
        ) from error
    return target


def remove(folder: Path) -> Path:
    """Removes `torch-stubs` from a folder if `write` has written it. Returns its path.

    Raises:
        MusaError: if it is of another origin.
    """
    target = _checked(folder)
    shutil.rmtree(target, ignore_errors=True)
    return target


def _checked(folder: Path) -> Path:
    target = folder / PACKAGE
    if target.exists() and not (target / MARK).is_file():
        raise MusaError(
            f"{target} is a stub package of another origin, and was not changed.\n"
            "Likely cause: another distribution with types for torch is installed.\n"
            "Fix: uninstall that distribution, or use another folder: "
            "python -m torch_musa stubs --folder FOLDER"
        )
    return target


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _add_modules(musa: Path, modules: Mapping[str, str]) -> None:
    lines = []
    for name, module in sorted(modules.items()):
        if not (musa / name).exists():
            # A folder, because pyright warns about a stub file without a Python file beside it.
            (musa / name).mkdir()
            (musa / name / "__init__.pyi").write_text(f"from {module} import *\n", encoding="utf-8")
            lines.append(f"from . import {name} as {name}\n")
    with (musa / "__init__.pyi").open("a", encoding="utf-8") as file:
        file.writelines(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command to a command line parser."""
    parser.add_argument(
        "--folder", type=Path, help="a folder that type checkers search (default: the one with torch)"
    )
    parser.add_argument("--remove", action="store_true", help="remove the stub package")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Runs the command. Returns the text to print and the exit status."""
    from . import entry_points, pack_modules

    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise MusaError("torch is not installed.\nFix: pip install torch", "pip install torch")
    torch_folder = Path(spec.origin).parent
    folder = options.folder or torch_folder.parent
    if options.remove:
        return f"removed {remove(folder)}", 0
    offered = entry_points.offered(entry_points.MODULES)
    modules = {name: offered[name].module for name in pack_modules.names()}
    return (
        f"wrote {write(folder, torch_folder, modules)}\n"
        "A program that type checkers read has to import torch.musa: `import torch.musa`.\n"
        "Run this command again after an upgrade of torch.",
        0,
    )
