# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Loads libraries that need those of the SDK, and explains a need that the SDK in use does not meet.

The SDK's folder need not be on the search path of the dynamic linker (`LD_LIBRARY_PATH`): a library that the
linker does not find is loaded by its path, and the linker then finds it by its name.

A library needs the SDK's by the name that these had at the build: libmusart.so with the emulator,
libmusart.so.4 or libmusart.so.5 with the vendor's. The file names of wheels without kernels do not say which.
"""

from __future__ import annotations

import ctypes
import os
import re

from . import sdk
from .errors import LibraryLoadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from .sdk import Sdk

    _Result = TypeVar("_Result")

_MISSING = re.compile(r"(lib(?:mu[a-zA-Z]+|mccl)\.so[.\d]*): cannot open shared object file")


def open_globally(path: str) -> ctypes.CDLL:
    """Loads a library whose symbols later ones use: packs and the extension are linked against it by name."""
    return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


def load(path: str, here: Sdk | None, opener: Callable[[str], _Result]) -> _Result:
    """Loads a library, after the libraries of the SDK that it needs and the dynamic linker does not find.

    Args:
        path (str): the library.
        here (Sdk or None): the SDK in use.
        opener (callable): loads the library of a path.

    Returns:
        the result of `opener`.

    Raises:
        OSError: of `opener`.
    """
    opened: set[str] = set()
    while True:
        try:
            return opener(path)
        except OSError as error:
            needed = _path_of_missing(here, reason_of(error))
            if needed is None or needed in opened:
                raise
            opened.add(needed)
            load(needed, here, open_globally)


def reason_of(error: OSError) -> str:
    """Returns the message of the dynamic linker. torch has it in the cause of its own error."""
    return str(error.__cause__ or error)


def _path_of_missing(here: Sdk | None, reason: str) -> str | None:
    """Returns the path of the library that the dynamic linker did not find, None if the SDK has none."""
    found = _MISSING.search(reason)
    if found is None or here is None or here.home is None:
        return None
    folders = ("lib", *(os.path.join("extras", "MUPTI", name) for name in ("lib64", "lib")))
    paths = (os.path.join(here.home, folder, found[1]) for folder in folders)
    return next(filter(os.path.exists, paths), None)


def explain(here: Sdk | None, distribution: str, library: str, reason: str) -> LibraryLoadError | None:
    """Returns the error, with its fix, or None if a library was refused for another reason.

    Args:
        here (Sdk or None): the SDK in use.
        distribution (str): the wheel of the library, such as "musa-ops-mudnn".
        library (str): the name of its file.
        reason (str): the message of the dynamic linker.
    """
    found = _MISSING.search(reason)
    if found is None or here is None or here.home is None:
        return None
    name, folder = found[1], os.path.join(here.home, "lib")
    if os.path.exists(os.path.join(folder, name)):
        command = f'export LD_LIBRARY_PATH="{folder}:$LD_LIBRARY_PATH"'
        cause = f"{folder} is not on the search path of libraries"
    else:
        from .installation import command_of_another_build

        command = command_of_another_build(distribution, "", sdk.title(here.kind or "musa"))
        cause = "the wheel was built with an SDK of another major version, or MUSA_HOME names another SDK"
    return LibraryLoadError(
        f"{library} needs {name}, the name of a library of the SDK that it was built with, and the libraries "
        f"of {here.home} have other names.\nLikely cause: {cause}.\nFix: {command}",
        command,
    )
