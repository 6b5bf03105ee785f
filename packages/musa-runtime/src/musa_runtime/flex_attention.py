# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A switch for `torch.nn.attention.flex_attention.flex_attention` on musa tensors.

torch's operator works on any device, but the function raises a ValueError for devices that are not in a
literal list. The switch replaces the private function of torch that checks the device (`_validate_device`),
and nothing else. It is off by default::

    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.musa.flex_attention.enable()
    mask = create_block_mask(causal, None, None, 1024, 1024, device="musa")
    out = flex_attention(query, key, value, block_mask=mask)

As on other devices, a call outside of `torch.compile` keeps the scores of all queries and keys in memory: a
tensor of shape (B, Hq, L, S).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import TYPE_CHECKING, Any

import torch
from torch._C import DispatchKey, DispatchKeySet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["disable", "enable", "enabled", "is_enabled"]

_CHECK = "_validate_device"
_AUTOCAST = DispatchKey.AutocastPrivateUse1  # type: ignore[attr-defined]

_torchs_check: Callable[..., None] | None = None  # while the switch is on


def is_enabled() -> bool:
    """Whether the switch is on in this process."""
    return _torchs_check is not None


def enable() -> None:
    """Makes torch's `flex_attention` accept musa tensors in this process. Imports its module, and Dynamo."""
    global _torchs_check
    module = _module()
    register_autocast()
    if _torchs_check is None and hasattr(module, _CHECK):
        _torchs_check = getattr(module, _CHECK)
        setattr(module, _CHECK, _validate_device)


def disable() -> None:
    """Restores torch's own check."""
    global _torchs_check
    if _torchs_check is not None:
        setattr(_module(), _CHECK, _torchs_check)
        _torchs_check = None


@contextlib.contextmanager
def enabled() -> Iterator[None]:
    """torch's `flex_attention` accepts musa tensors in the block. The switch is one for all threads."""
    before = is_enabled()
    enable()
    try:
        yield
    finally:
        if not before:
            disable()


def _module() -> Any:
    return importlib.import_module("torch.nn.attention.flex_attention")


def _validate_device(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
    if query.device.type != "musa" and _torchs_check is not None:
        _torchs_check(query, key, value)


@functools.cache
def register_autocast() -> None:
    """Registers the operator for autocast, once. Without it, the operator raises an error under autocast."""
    torch.ops.higher_order.flex_attention.py_impl(_AUTOCAST)(_under_autocast)
    torch.ops.higher_order.flex_attention_backward.fallthrough(_AUTOCAST)


def _under_autocast(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *others: Any) -> Any:
    """The operator, with query, key and value in the dtype of autocast, as for the other devices."""
    dtype = torch.get_autocast_dtype("musa")
    # float64 is not cast, as in all operators under autocast.
    cast = [x if x.dtype == torch.float64 else x.to(dtype) for x in (query, key, value)]
    with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(_AUTOCAST)):
        return torch.ops.higher_order.flex_attention(*cast, *others)
