# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Loads torchvision's C++ library into a CPU build of torch, with stand-ins for the CUDA libraries.

The package index has CUDA builds of torchvision only. Their library holds the CPU kernels too, but the
loader refuses it, because libtorch_cuda.so, libc10_cuda.so and CUDA's runtime are missing. `make(library,
folder)` compiles libraries of these names with the symbols that torchvision imports from them and loads
them, so that `import torchvision` finds its operators. A call of a CUDA function ends the process with the
function's name.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
from pathlib import Path

from tests.musa_ops_vision import cuda_stubs

ROOT = Path(__file__).resolve().parents[2]
CUDA = r"^lib(c10_cuda|torch_cuda|cudart)\.so"


def library() -> Path | None:
    """The C++ library of the installed torchvision, or None."""
    spec = importlib.util.find_spec("torchvision")
    path = Path(spec.origin).parent / "_C.so" if spec is not None and spec.origin else None
    return path if path is not None and path.is_file() else None


def make(path: Path, folder: Path) -> list[str]:
    """Makes a stand-in in `folder` for each CUDA library that `path` needs and that the loader does not find.

    Returns:
        list of str: their names; empty if the library loads without them.

    Raises:
        RuntimeError: another library is missing.
    """
    import torch

    lib = Path(torch.__file__).parent / "lib"
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", _run("readelf", "-d", "-W", str(path)))
    missing = sorted(name for name in needed if not (lib / name).is_file() and _missing(name))
    foreign = [name for name in missing if not re.match(CUDA, name)]
    if foreign:
        raise RuntimeError(f"{path} needs {', '.join(foreign)}, which is neither here nor a library of CUDA")
    if missing:
        undefined = cuda_stubs.parse_symbols(_run("readelf", "--dyn-syms", "-W", str(path)))[1]
        owner = cuda_stubs.parse_version_needs(_run("readelf", "-V", "-W", str(path)))
        wanted: dict[str, set[cuda_stubs.Symbol]] = {name: set() for name in missing}
        for symbol in undefined:
            if owner.get(symbol.version) in missing:
                wanted[owner[symbol.version]].add(symbol)
            elif not symbol.version and "cuda" in symbol.name:
                wanted[next(name for name in missing if "cudart" not in name)].add(symbol)
        for name in missing:
            cuda_stubs.compile_library(folder / name, wanted[name])
    return missing


def load(folder: Path) -> None:
    """Loads the stand-ins that were made in a folder."""
    for path in sorted(folder.glob("*.so*")):
        ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)


def _missing(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return True
    return False


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
