# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Adapts precision plugins of Lightning and Fabric to musa."""

import functools

import torch

from .derived import Derived, derive


def to_musa(plugin):
    """Makes a precision plugin use musa's autocast and gradient scaling.

    Lightning creates `MixedPrecision` with device "cuda" for every external accelerator, and
    `FSDPPrecision` always uses CUDA's autocast. Without CUDA both compute in float32.

    Args:
        plugin (Precision or None): a plugin; a `MixedPrecision` is modified in place.

    Returns:
        The plugin to use: `plugin` itself, or an instance of a derived class for an `FSDPPrecision`.
    """
    if getattr(plugin, "device", None) == "cuda":
        plugin.device = "musa"
        # A scaler created for CUDA stays disabled. An enabled scaler was created for musa by the
        # program.
        if getattr(plugin, "scaler", None) is not None and not plugin.scaler.is_enabled():
            plugin.scaler = torch.amp.GradScaler("musa")
    elif _is_fsdp(plugin) and not isinstance(plugin, _Sharded):
        scaler = plugin.scaler
        plugin = _sharded_class(type(plugin))(plugin.precision)
        if scaler is not None and scaler.is_enabled():
            plugin.scaler = scaler
    return plugin


def _is_fsdp(plugin):
    return any(base.__name__ == "FSDPPrecision" for base in type(plugin).__mro__)


class _Sharded(Derived):
    """Replaces the parts of `FSDPPrecision` that use CUDA only."""

    def __init__(self, precision):
        from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

        super().__init__(precision)
        if precision == "16-mixed":
            self.scaler = ShardedGradScaler("musa")

    def forward_context(self):
        if "mixed" not in self.precision:
            return super().forward_context()
        return torch.autocast("musa", torch.bfloat16 if self.precision == "bf16-mixed" else torch.float16)


@functools.cache
def _sharded_class(base):
    return derive(_sharded_class, _Sharded, base)
