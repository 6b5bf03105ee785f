# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.mudnn` where the wheel musa-ops-mudnn is not installed, so that programs may set it
everywhere."""

import contextlib
import importlib.util
import sys
import types

import torch.backends


class AbsentMudnn(types.ModuleType):
    """Settings without effect, like those of `torch.backends.cudnn` in a torch without cuDNN.

    Attributes:
        enabled (bool), deterministic (bool), allow_tf32 (bool): kept, and read by nothing.
    """

    def __init__(self, name):
        super().__init__(name, "muDNN is not used: the wheel musa-ops-mudnn is not installed.")
        self.enabled, self.deterministic, self.allow_tf32 = True, False, False

    def version(self):
        """None: there is no muDNN."""
        return None

    def is_available(self):
        """False: there is no muDNN."""
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


def register():
    """Adds `torch.backends.mudnn` unless it exists or the wheel that brings it is installed."""
    if hasattr(torch.backends, "mudnn"):
        return
    spec = importlib.util.find_spec("musa_ops_mudnn")
    if spec is None or spec.origin is None:  # a folder that pip left behind has no origin
        name = "torch.backends.mudnn"
        sys.modules[name] = torch.backends.mudnn = AbsentMudnn(name)
