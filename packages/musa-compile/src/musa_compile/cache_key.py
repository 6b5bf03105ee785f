# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What Inductor's caches have to know of this package."""

import functools
import hashlib
import sys
from pathlib import Path

from torch._inductor.custom_graph_pass import CustomGraphModulePass


class VersionPass(CustomGraphModulePass):
    """A pass that changes nothing. Its uuid is part of the key of Inductor's caches, which would otherwise
    return code that another version of this package generated, or the other generator: C++ kernels fault
    where the host cannot address the memory.

    Args:
        generator (str): the name of the generator.
    """

    def __init__(self, generator):
        self.generator = generator

    def __call__(self, graph_module):
        pass

    def uuid(self):
        return hashlib.sha256(self.generator.encode() + _digest_of_sources()).digest()


@functools.cache
def _digest_of_sources():
    digest = hashlib.sha256()
    for folder in sys.modules[__package__].__path__:
        for file in sorted(Path(folder).glob("*.py")):
            digest.update(file.read_bytes())
    return digest.digest()
