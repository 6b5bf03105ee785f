# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Settings of the pack, and paths for C++ programs that load packages of AOTInductor:
`python -m musa_compile.config --cmakedir`.

Imports neither torch nor any library.
"""

import argparse
import os
import sys

from musa_runtime.errors import LibraryLoadError

from . import installed

GENERATORS = (None, "host", "triton")

# The generator of kernels for graphs that are compiled from now on: C++ on the host, or Triton. None chooses
# C++ where the host can address the device's memory, and Triton elsewhere.
generator = None


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m musa_compile.config", description="Where the pack for torch.compile is installed."
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
