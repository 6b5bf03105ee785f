# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.mudnn`: muDNN's version and settings, with the names of `torch.backends.cudnn`.

A setting made before the first use of the device is kept here until the pack's library is loaded, and holds
from then on. Nothing here loads it: this module holds the import hook of the pack.
"""

import contextlib
import ctypes
import os
import sys


def musa_import(musa):
    """The import hook of the pack. Importing this module has registered `torch.backends.mudnn`."""


# After `musa_import`: if a program imports this module before torch, the hook is looked up in this partially
# initialized module.
import torch.backends  # noqa: E402

_NAMES = ("enabled", "deterministic", "allow_tf32")

# What is set before the library is there; then None.
_waiting = {"enabled": True, "deterministic": False, "allow_tf32": False}


def version():
    """muDNN's version as a number, 1000 * major + 100 * minor + patch; None where there is none."""
    try:
        path = _library().paths()[0]
    except RuntimeError:
        return None
    # Asked of muDNN itself, not of the pack's library, which only the pack loader may load.
    get_version = ctypes.CDLL(path)._ZN4musa3dnn10GetVersionEv  # musa::dnn::GetVersion()
    get_version.restype = ctypes.c_int64
    return get_version()


def is_available():
    """Whether muDNN serves operators of musa, or will from the device's first use on. Touches no device."""
    if _waiting is None:
        return True
    import musa_runtime
    from musa_runtime import initialization

    # Initialised without this pack: it is disabled or failed to load. python -m torch_musa packs
    if musa_runtime.load().error is not None or initialization.is_initialized():
        return False
    try:
        return all(map(os.path.exists, _library().paths()))
    except RuntimeError:
        return False


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None):
    """Set what is not None.

    Returns:
        tuple: the settings from before, to be given back to this function.
    """
    before = tuple(_get(name) for name in _NAMES)
    for name, value in zip(_NAMES, (_enabled, _deterministic, _allow_tf32)):
        if value is not None:
            _set(name, value)
    return before


@contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True):
    """Within the block, the settings are these. The defaults are those of `torch.backends.cudnn.flags`."""
    with torch.backends.__allow_nonbracketed_mutation():
        before = set_flags(enabled, deterministic, allow_tf32)
    try:
        yield
    finally:
        with torch.backends.__allow_nonbracketed_mutation():
            set_flags(*before)


def attach():
    """Hand the settings over to the pack's library, once it is loaded."""
    global _waiting
    if _waiting is not None:
        settings, _waiting = _waiting, None
        for name, value in settings.items():
            _set(name, value)


def _library():
    from . import _library

    return _library


def _cell(name):
    return _library().library().musa_ops_mudnn_setting(name.encode()).contents


def _get(name):
    return _waiting[name] if _waiting is not None else _cell(name).value


def _set(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"torch.backends.mudnn.{name} must be a bool, but got {type(value).__name__}")
    if _waiting is not None:
        _waiting[name] = value
    else:
        _cell(name).value = value


def _setting(name):
    return torch.backends.ContextProp(lambda: _get(name), lambda value: _set(name, value))


class MudnnModule(torch.backends.PropModule):
    """The module with its settings as attributes.

    Attributes:
        enabled (bool): whether muDNN serves operators; else the next provider does.
        deterministic (bool): decline what may sum in any order.
        allow_tf32 (bool): products and convolutions of float32 may round their operands to TF32.
    """

    enabled = _setting("enabled")
    deterministic = _setting("deterministic")
    allow_tf32 = _setting("allow_tf32")

    def __dir__(self):
        return sorted({*super().__dir__(), *_NAMES, "version", "is_available", "set_flags", "flags"})


def register():
    """Make `torch.backends.mudnn` exist. A module that another package put there stays."""
    if not hasattr(torch.backends, "mudnn"):
        name = "torch.backends.mudnn"
        sys.modules[name] = module = MudnnModule(sys.modules[__name__], name)
        torch.backends.mudnn = module


register()
