# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What Inductor's caches have to know of this package, so that another version is not given code of this one."""

import functools
import hashlib
import sys
from pathlib import Path


@functools.cache
def digest():
    """Digest of the sources of this package that determine generated code, and of the headers in it.

    Returns:
        bytes: 32 of them.
    """
    result = hashlib.sha256()
    for folder in sys.modules[__package__].__path__:
        for pattern in ("*.py", "include/**/*.h"):
            for file in sorted(Path(folder).glob(pattern)):
                result.update(file.read_bytes())
    return result.digest()
