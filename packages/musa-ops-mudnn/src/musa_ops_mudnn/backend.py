# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.mudnn`: muDNN's version and settings, with the names of `torch.backends.cudnn`.

A setting made before the first use of the device is stored here and passed to the pack's library when that is
loaded. This module holds the import hook of the pack, so it does not load the library.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any


def musa_import(musa: ModuleType) -> None:
    """The import hook of the pack. Importing this module registers `torch.backends.mudnn`."""


# Imported after `musa_import` is defined: if a program imports this module before torch, the hook is looked
# up in this partially initialized module.
import torch.backends  # noqa: E402

# In the order of the parameters of set_flags: the vendor's function has allow_tf32 as its only parameter.
_NAMES = ("allow_tf32", "enabled", "benchmark", "deterministic")

# The settings made before the library is loaded; None afterwards.
_waiting: dict[str, bool] | None = {"allow_tf32": False, "enabled": True, "deterministic": False}
_benchmark = False  # never read: muDNN recommends algorithms without measuring them


def version() -> int | None:
    """Returns muDNN's version as 1000 * major + 100 * minor + patch, or None if it is not installed."""
    try:
        path = _library().paths()[0]
    except RuntimeError:
        return None
    # Calls muDNN itself instead of the pack's library, which only the pack loader may load.
    get_version = ctypes.CDLL(path)._ZN4musa3dnn10GetVersionEv  # musa::dnn::GetVersion()
    get_version.restype = ctypes.c_int64
    return get_version()


def is_available() -> bool:
    """Whether operators use muDNN, or will from the first use of the device. Uses no device."""
    if _waiting is None:
        return True
    import musa_runtime
    from musa_runtime import initialization

    # Initialized without this pack: it is disabled or failed to load (see python -m torch_musa packs).
    if musa_runtime.load().error is not None or initialization.is_initialized():
        return False
    try:
        return all(map(os.path.exists, _library().paths()))
    except RuntimeError:
        return False


def set_flags(
    _allow_tf32: bool | None = None,
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _deterministic: bool | None = None,
) -> tuple[bool, ...]:
    """Sets each setting that is not None. The parameter names are those of `torch.backends.cudnn.set_flags`.

    Returns:
        tuple: the previous settings, in the order of the parameters.
    """
    before = tuple(_get(name) for name in _NAMES)
    for name, value in zip(_NAMES, (_allow_tf32, _enabled, _benchmark, _deterministic)):
        if value is not None:
            _set(name, value)
    return before


@contextlib.contextmanager
def flags(
    allow_tf32: bool | None = None,
    enabled: bool | None = None,
    benchmark: bool | None = None,
    deterministic: bool | None = None,
) -> Iterator[None]:
    """Context manager that sets the given settings within the block; the others are not changed.

    `torch.backends.cudnn.flags` differs: it sets the others to defaults, which disables cuDNN.
    """
    with torch.backends.__allow_nonbracketed_mutation():
        before = set_flags(allow_tf32, enabled, benchmark, deterministic)
    try:
        yield
    finally:
        with torch.backends.__allow_nonbracketed_mutation():
            set_flags(*before)


def attach() -> None:
    """Passes the settings to the pack's library after it was loaded."""
    global _waiting
    if _waiting is not None:
        settings, _waiting = _waiting, None
        for name, value in settings.items():
            _set(name, value)


def _library() -> Any:
    from . import _library

    return _library


def _cell(name: str) -> Any:
    return _library().library().musa_ops_mudnn_setting(name.encode()).contents


def _get(name: str) -> bool:
    if name == "benchmark":
        return _benchmark
    return _waiting[name] if _waiting is not None else _cell(name).value


def _set(name: str, value: bool) -> None:
    global _benchmark
    if not isinstance(value, bool):
        raise TypeError(f"torch.backends.mudnn.{name} must be a bool, but got {type(value).__name__}")
    if name == "benchmark":
        _benchmark = value
    elif _waiting is not None:
        _waiting[name] = value
    else:
        _cell(name).value = value


def _setting(name: str) -> Any:
    return torch.backends.ContextProp(lambda: _get(name), lambda value: _set(name, value))


class MudnnModule(torch.backends.PropModule):
    """The module, with its settings as attributes.

    Attributes:
        enabled (bool): use muDNN; if False, the next provider is used.
        deterministic (bool): use no operator whose order of summation is undefined.
        allow_tf32 (bool): float32 matrix products and convolutions may round their operands to TF32.
            `torch.backends.musa.matmul.allow_tf32` and `torch.set_float32_matmul_precision` allow it in
            matrix products too, `torch.backends.fp32_precision` in both.
        benchmark (bool): has no effect: muDNN recommends algorithms without measuring them.
    """

    enabled: bool = _setting("enabled")
    benchmark: bool = _setting("benchmark")
    deterministic: bool = _setting("deterministic")
    allow_tf32: bool = _setting("allow_tf32")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_NAMES, "version", "is_available", "set_flags", "flags"})


def register() -> None:
    """Registers `torch.backends.mudnn`, unless another package has registered such a module."""
    if not hasattr(torch.backends, "mudnn"):
        name = "torch.backends.mudnn"
        sys.modules[name] = module = MudnnModule(sys.modules[__name__], name)
        torch.backends.mudnn = module  # type: ignore[attr-defined]


register()
