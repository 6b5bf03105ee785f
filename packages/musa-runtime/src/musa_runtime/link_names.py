# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The error of a library that needs one of the SDK by a name that the SDK in use does not have.

A library needs the SDK's by the name that these had at the build: libmusart.so with the emulator,
libmusart.so.4 or libmusart.so.5 with the vendor's. The file names of wheels without kernels do not say which.
Imported on errors only.
"""

from __future__ import annotations

import os
import re

from . import sdk
from .errors import LibraryLoadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .sdk import Sdk

_MISSING = re.compile(r"(lib(?:mu[a-zA-Z]+|mccl)\.so[.\d]*): cannot open shared object file")


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
