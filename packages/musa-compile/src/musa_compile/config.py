# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Settings of the pack, and paths for C++ programs that load AOTInductor packages:
`python -m musa_compile.config --cmakedir`.

Does not import torch or any other library.
"""

import os
import sys
from importlib import metadata

from musa_runtime.command_line import Parser
from musa_runtime.errors import LibraryLoadError

from . import installed

GENERATORS = (None, "host", "triton")

# The kernel generator for graphs compiled from now on: "host" for C++, or "triton". None selects
# C++ if the host can address device memory, and Triton otherwise.
generator = None


def main(arguments=None):
    parser = Parser(
        prog="python -m musa_compile.config",
        description="Prints the location of the torch.compile pack.",
        version=lambda: metadata.version("musa-compile"),
    )
    text = "directory of the CMake package"
    parser.add_argument("--cmakedir", action="store_true", required=True, help=text)
    parser.parse_args(arguments)
    try:
        print(os.path.dirname(installed.file(installed.CMAKE)))
    except LibraryLoadError as error:
        print(f"musa_compile: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
