# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Copies the arguments of a call to the CPU, with the same strides and aliasing as on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .call import DEVICE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .call import OperatorCall

_ALIGNMENT = 16  # bytes: spans start at a multiple of it, so that elements of every dtype are aligned


class HostArguments:
    """CPU copies of a call's arguments.

    For each storage, one copy contains the bytes from the first to the last element that the arguments use;
    disjoint spans are copied separately. CPU tensors that the operator only reads are not copied.

    Attributes:
        args (tuple), kwargs (dict): the call's arguments with CPU tensors, and "cpu" for the musa device.
        nbytes (int): size of the copies.
    """

    def __init__(self, call: OperatorCall) -> None:
        self._call = call
        self._written = {id(tensor) for _, tensor in call.written}
        spans = _merge(_spans(call))
        self._copies = {}
        self.nbytes = sum(span.end - span.begin for span in spans)
        self._only_read = []  # (span, copy) pairs
        for span in spans:
            data = span.copy()
            if not any(id(tensor) in self._written for tensor in span.tensors):
                self._only_read.append((span, data))
            for tensor in span.tensors:
                self._copies[id(tensor)] = _rebuild(tensor, data, span.begin)
        self.args = tuple(self.on_host(value) for value in call.args)
        self.kwargs = {
            name: None if isinstance(value, torch.Generator) else self.on_host(value)
            for name, value in call.kwargs.items()
        }
        if self.kwargs.get("pin_memory"):
            self.kwargs["pin_memory"] = False

    def on_host(self, value: Any) -> Any:
        """Returns an argument with tensors replaced by their copies and the musa device by the CPU."""
        if isinstance(value, torch.Tensor):
            return self._copies.get(id(value), value)
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == DEVICE else value
        if isinstance(value, torch.Generator):
            return None
        if isinstance(value, (list, tuple)):
            return type(value)(self.on_host(item) for item in value)
        return value

    def named(self) -> dict[str, torch.Tensor]:
        """Returns the CPU copy for each name in `call.inputs`."""
        return {name: self.on_host(tensor) for name, tensor in self._call.inputs}

    def overwritten(self) -> list[str]:
        """Returns the names of arguments whose memory changed although the operator only reads them."""
        changed = {
            id(tensor)
            for span, data in self._only_read
            if not torch.equal(span.copy(), data)
            for tensor in span.tensors
        }
        return [name for name, tensor in self._call.inputs if id(tensor) in changed]

    def duplicate(self) -> HostArguments:
        """Returns a second set of copies, made on the CPU before the operator runs on the first.

        Copies that the operator only reads are shared by both sets.
        """
        other = object.__new__(HostArguments)
        other._call, other._written, other.nbytes = self._call, self._written, self.nbytes
        other._only_read = self._only_read
        storages, other._copies = {}, {}
        written = {_storage_key(self._copies[i]) for i in self._written if i in self._copies}
        for i, tensor in self._copies.items():
            key = _storage_key(tensor)
            if key not in written:
                other._copies[i] = tensor
                continue
            if key not in storages:
                storages[key] = tensor.untyped_storage().clone()
            other._copies[i] = _resolve(
                tensor,
                torch.empty(0, dtype=tensor.dtype).set_(
                    storages[key], tensor.storage_offset(), tensor.size(), tensor.stride()
                ),
            )
        other.args = tuple(other.on_host(value) for value in self._call.args)
        other.kwargs = {name: other.on_host(value) for name, value in self._call.kwargs.items()}
        if other.kwargs.get("pin_memory"):
            other.kwargs["pin_memory"] = False
        return other


class _Span:
    """A range of bytes of a storage that one or several tensors use."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensors = [tensor]
        self.storage = tensor.untyped_storage()
        self.device = tensor.device
        size = tensor.element_size()
        extent = 0
        if tensor.numel():
            extent = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
        first = tensor.storage_offset() * size
        self.begin = first // _ALIGNMENT * _ALIGNMENT
        self.end = first + extent * size

    def copy(self) -> torch.Tensor:
        """Returns the bytes as a CPU tensor of dtype uint8."""
        data = torch.empty(0, dtype=torch.uint8, device=self.device)
        data.set_(self.storage, self.begin, (self.end - self.begin,), (1,))
        return data.cpu() if self.device.type != "cpu" else data.clone()


def _spans(call: OperatorCall) -> list[_Span]:
    """Returns spans of arguments on the device, and of CPU tensors whose storage the operator writes."""
    seen, spans = set(), []
    shared = {_storage_key(tensor) for _, tensor in call.written}
    for _, tensor in call.inputs:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            if tensor.device.type == DEVICE or _storage_key(tensor) in shared:
                spans.append(_Span(tensor))
    return spans


def _merge(spans: Iterable[_Span]) -> list[_Span]:
    """Merges overlapping spans of the same storage."""
    merged: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.storage._cdata, span.begin)):
        last = merged[-1] if merged else None
        if last and last.storage._cdata == span.storage._cdata and span.begin < last.end:
            last.tensors += span.tensors
            last.end = max(last.end, span.end)
        else:
            merged.append(span)
    return merged


def _rebuild(tensor: torch.Tensor, data: torch.Tensor, begin: int) -> torch.Tensor:
    """Returns the tensor's copy in `data`, which contains the bytes of its storage from `begin` on."""
    offset = tensor.storage_offset() - begin // tensor.element_size() if tensor.numel() else 0
    copy = torch.empty(0, dtype=tensor.dtype)
    copy.set_(data.untyped_storage(), offset, tensor.size(), tensor.stride())
    return _resolve(tensor, copy)


def _resolve(tensor: torch.Tensor, copy: torch.Tensor) -> torch.Tensor:
    """Returns the copy with the conjugate and negative bits of the tensor applied."""
    if tensor.is_conj():
        copy = copy.conj()
    return torch._neg_view(copy) if tensor.is_neg() else copy


def _storage_key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
