# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.musa.fft_plan_cache`, with the interface of `torch.backends.cuda.cufft_plan_cache`.

This module holds the import hook of the pack, so it does not load the library.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from types import ModuleType
    from typing import Any


def musa_import(musa: ModuleType) -> None:
    """The import hook of the pack: adds `torch.backends.musa.fft_plan_cache`."""
    torch.backends.musa.fft_plan_cache = PlanCaches()  # type: ignore[attr-defined]


# Imported after `musa_import` is defined: if a program imports this module before torch, the hook is looked
# up in this partially initialized module.
import torch.backends  # noqa: E402


def _library() -> ctypes.CDLL:
    from . import _library

    torch.musa.init()  # type: ignore[attr-defined]  # loads the pack
    return _library.library()


def _check(failure: bytes | None) -> None:
    if failure is not None:
        raise RuntimeError(failure.decode(errors="replace"))


class PlanCache:
    """The plans of muFFT that are kept for one device. Graphs that were captured keep their own plans, which
    are not counted.

    Attributes:
        size (int): the number of plans.
        max_size (int): the most plans that are kept, 4096 by default. The least recently used ones are
            destroyed.
    """

    def __init__(self, device: int | None) -> None:
        self._device = device  # None: the current device at each use

    def _index(self) -> int:
        return torch.musa.current_device() if self._device is None else self._device  # type: ignore[attr-defined]

    @property
    def size(self) -> int:
        return _library().musa_ops_math_plan_cache_size(self._index())

    @property
    def max_size(self) -> int:
        return _library().musa_ops_math_plan_cache_max_size(self._index())

    @max_size.setter
    def max_size(self, size: int) -> None:
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"fft_plan_cache.max_size must be an int, but got {type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"fft_plan_cache.max_size must not be negative, but got {size}")
        _check(_library().musa_ops_math_set_plan_cache_max_size(self._index(), size))

    def clear(self) -> None:
        """Destroys the plans, after the device has finished its work."""
        _check(_library().musa_ops_math_clear_plan_cache(self._index()))


class PlanCaches(PlanCache):
    """The cache of the current device; `fft_plan_cache[device]` is that of another one."""

    def __init__(self) -> None:
        super().__init__(None)

    def __getitem__(self, device: Any) -> PlanCache:
        """Returns the cache of a device.

        Args:
            device (int, str or torch.device): the device.

        Raises:
            RuntimeError: there is no such device.
        """
        place = torch.device("musa", device) if isinstance(device, int) else torch.device(device)
        index = place.index if place.index is not None else torch.musa.current_device()
        count = torch.musa.device_count()  # type: ignore[attr-defined]
        if place.type != "musa" or not 0 <= index < count:
            raise RuntimeError(f"fft_plan_cache[{device!r}]: expected a musa device below {count}")
        return PlanCache(index)
