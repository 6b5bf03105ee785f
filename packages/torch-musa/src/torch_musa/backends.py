# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Placeholders in `torch.backends` for libraries whose pack is not there, so that programs may make their
settings everywhere.

torch-musa declares them by entry points of group `torch_musa.backend_placeholders`. The name of one is that
of the pack and of the library in `torch.backends`; the value is the class. `import_hooks.py` adds them.
"""

import contextlib
import types


class AbsentBackend(types.ModuleType):
    """Settings without effect, like those of `torch.backends.cudnn` in a torch without cuDNN.

    Attributes:
        enabled (bool), deterministic (bool), allow_tf32 (bool): kept, and read by nothing.
    """

    def __init__(self, name):
        super().__init__(name, "The settings have no effect: the pack of this library is not there.")
        self.enabled, self.deterministic, self.allow_tf32 = True, False, False

    def version(self):
        """None: the library is not there."""
        return None

    def is_available(self):
        """False: the library is not there."""
        return False

    def set_flags(self, _enabled=None, _deterministic=None, _allow_tf32=None):
        """Sets each setting that is not None and returns the settings from before as a tuple."""
        before = (self.enabled, self.deterministic, self.allow_tf32)
        given = (_enabled, _deterministic, _allow_tf32)
        self.enabled, self.deterministic, self.allow_tf32 = (
            old if new is None else new for old, new in zip(before, given, strict=True)
        )
        return before

    @contextlib.contextmanager
    def flags(self, enabled=False, deterministic=False, allow_tf32=True):
        """Changes the settings within a block."""
        before = self.set_flags(enabled, deterministic, allow_tf32)
        try:
            yield
        finally:
            self.set_flags(*before)
