# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What Inductor's caches have to know of this package: another version must not be given code of this one."""

import functools
import hashlib
import sys
from pathlib import Path


def key(generator):
    """Digest of what determines generated code: the generator, this package's sources and its headers.

    Args:
        generator (str): its name: C++ kernels fault where the host cannot address the device's memory.

    Returns:
        bytes: 32 of them.
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
