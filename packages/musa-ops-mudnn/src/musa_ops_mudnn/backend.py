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

# In the order of the parameters of set_flags: the vendor's function has allow_tf32 as its only one.
_NAMES = ("allow_tf32", "enabled", "benchmark", "deterministic")

# What is set before the library is there; then None.
_waiting = {"allow_tf32": False, "enabled": True, "deterministic": False}
_benchmark = False  # read by nothing: muDNN recommends algorithms without measuring them


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


def set_flags(_allow_tf32=None, _enabled=None, _benchmark=None, _deterministic=None):
    """Sets each setting that is not None. Parameters are named as those of `torch.backends.cudnn.set_flags`.

    Returns:
        tuple: the settings from before, in the order of the parameters.
    """
    before = tuple(_get(name) for name in _NAMES)
    for name, value in zip(_NAMES, (_allow_tf32, _enabled, _benchmark, _deterministic)):
        if value is not None:
            _set(name, value)
    return before


@contextlib.contextmanager
def flags(allow_tf32=None, enabled=None, benchmark=None, deterministic=None):
    """Within the block, the settings that are given have these values; the others stay as they are.

    `torch.backends.cudnn.flags` gives defaults to those that are not given, and so switches cuDNN off.
    """
    with torch.backends.__allow_nonbracketed_mutation():
        before = set_flags(allow_tf32, enabled, benchmark, deterministic)
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
    if name == "benchmark":
        return _benchmark
    return _waiting[name] if _waiting is not None else _cell(name).value


def _set(name, value):
    global _benchmark
    if not isinstance(value, bool):
        raise TypeError(f"torch.backends.mudnn.{name} must be a bool, but got {type(value).__name__}")
    if name == "benchmark":
        _benchmark = value
    elif _waiting is not None:
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
        allow_tf32 (bool): products and convolutions of float32 may round their operands to TF32. So do
            products by `torch.backends.musa.matmul.allow_tf32` and
            `torch.set_float32_matmul_precision`, and both by `torch.backends.fp32_precision`.
        benchmark (bool): kept, without effect: muDNN recommends algorithms without measuring them.
    """

    enabled = _setting("enabled")
    benchmark = _setting("benchmark")
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
