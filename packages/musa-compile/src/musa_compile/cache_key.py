# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The part of Inductor's cache keys that keeps versions of this package from sharing generated code."""

import functools
import hashlib
import sys
from pathlib import Path


def key(generator):
    """Returns a digest of everything that determines generated code: generator, sources and headers.

    Args:
        generator (str): its name, because C++ kernels fault if the host cannot address device memory.

    Returns:
        bytes: 32 bytes.
    """
    return hashlib.sha256(generator.encode() + _digest_of_sources()).digest()


@functools.cache
def _digest_of_sources():
    digest = hashlib.sha256()
    for folder in sys.modules[__package__].__path__:
        for pattern in ("*.py", "include/**/*.h"):
            for file in sorted(Path(folder).glob(pattern)):
                digest.update(file.read_bytes())
    return digest.digest()
