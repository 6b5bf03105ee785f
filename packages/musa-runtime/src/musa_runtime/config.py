# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Paths and versions for builds against the runtime: `python -m musa_runtime.config --cmakedir`.

Imports neither torch nor any library, so it also works on a machine where the runtime does not load.
"""

from __future__ import annotations

import os
import sys

from . import sdk
from ._build import ABI, __version__
from ._load import package_file, reinstall_command
from .command_line import Parser
from .errors import LibraryLoadError, SdkNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def cmake_dir() -> str:
    """Directory of `musa_runtimeConfig.cmake`, for `musa_runtime_DIR` or `CMAKE_PREFIX_PATH`."""
    return os.path.dirname(_installed("share/cmake/musa_runtime/musa_runtimeConfig.cmake"))


def include_dir() -> str:
    """Directory to put on the include path; headers are `<c10/musa/...>`, `<ATen/musa/...>`,
    `<musa_runtime/...>`."""
    return os.path.dirname(os.path.dirname(_installed("include/musa_runtime/op_pack.h")))


def library_dir() -> str:
    """Directory of `libmusa_runtime.so`."""
    return os.path.dirname(_installed("lib/libmusa_runtime.so"))


def musa_home() -> str:
    """The MUSA SDK in use.

    Raises:
        SdkNotFoundError: no SDK is found.
    """
    found = sdk.resolve()
    if found.home is None:
        raise SdkNotFoundError(found.reason, found.command)  # type: ignore[arg-type]
    return found.home


def _installed(relative: str) -> str:
    path = package_file(relative)
    if path is None:
        command = reinstall_command()
        raise LibraryLoadError(
            f"this installation of musa_runtime has no {relative}.\n"
            f"Likely cause: an incomplete installation.\nFix: {command}",
            command,
        )
    return path


QUESTIONS = {
    "--cmakedir": (cmake_dir, "directory of the CMake package"),
    "--includedir": (include_dir, "directory of the C++ headers"),
    "--libdir": (library_dir, "directory of libmusa_runtime.so"),
    "--musa-home": (musa_home, "the MUSA SDK in use"),
    "--abi": (lambda: ABI, "ABI number that op packs are checked against"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m musa_runtime.config",
        description="Prints where the MUSA runtime is installed, one line for each option.",
        version=__version__,
    )
    for option, (answer, text) in QUESTIONS.items():
        parser.add_argument(option, dest="answers", action="append_const", const=answer, help=text)
    answers = parser.parse_args(arguments).answers
    if not answers:
        parser.error("an option is required")
    # A path may contain bytes that are not text.
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        for answer in answers:
            print(answer())
    except (LibraryLoadError, SdkNotFoundError) as error:
        print(f"musa_runtime: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
