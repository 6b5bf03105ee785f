# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.amp`: the interface of `torch.amp` with the device type "musa".

The rules of `torch.autocast("musa")` and the operators of `torch.amp.GradScaler("musa")` are in the library
of this pack; importing this module does not load it.
"""

from __future__ import annotations

import functools

import torch


class autocast(torch.amp.autocast):
    """`torch.autocast("musa")`: a context manager, and a decorator, for mixed precision.

    Args:
        enabled (bool): False switches autocast off within an enabled region.
        dtype (torch.dtype, optional): `torch.float16` or `torch.bfloat16`. None means
            `torch.get_autocast_dtype("musa")`, which is float16 unless it was changed.
        cache_enabled (bool): cache the cast weights until the outermost region ends.

    Raises:
        RuntimeError: bfloat16 on a device without bfloat16 units.
    """

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype | None = None, cache_enabled: bool = True
    ) -> None:
        super().__init__("musa", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler("musa")`: scales losses so that float16 gradients neither vanish nor overflow.

    Args:
        init_scale (float): the initial scale.
        growth_factor (float): multiplies the scale after `growth_interval` steps with finite gradients.
        backoff_factor (float): multiplies the scale after a step with an infinite or NaN gradient.
        growth_interval (int): number of steps with finite gradients before the scale grows.
        enabled (bool): False turns scaling off: every method returns its input unchanged.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "musa",
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )


custom_fwd = functools.partial(torch.amp.custom_fwd, device_type="musa")
custom_bwd = functools.partial(torch.amp.custom_bwd, device_type="musa")
for _function in (custom_fwd, custom_bwd):
    _function.__doc__ = f'`torch.amp.{_function.func.__name__}` with `device_type="musa"`.'


def amp_definitely_not_available() -> bool:
    """Whether no musa device is available."""
    return not torch.musa.is_available()  # type: ignore[attr-defined]


# Submodules of torch.cuda.amp, which programs read as attributes too.
from . import autocast_mode as autocast_mode  # noqa: E402
from . import common as common  # noqa: E402
from . import grad_scaler as grad_scaler  # noqa: E402

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
