# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A stream that writes the memory between a tensor's elements while an operation writes the elements."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import torch

from tests.harness.call_observer import check, observed_calls
from tests.harness.emulator import loaded_sdk

# Calls before which the neighbour writes: every call that may write device memory.
_WRITES = ("musaMemcpy", "musaMemset", "musaLaunch")


def _unowned(tensor: torch.Tensor) -> torch.Tensor:
    """A mask of the bytes of the tensor's storage that belong to none of its elements."""
    size = tensor.element_size()
    unowned = torch.ones(tensor.untyped_storage().nbytes() // size, dtype=torch.bool)
    unowned.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).fill_(False)
    rest = tensor.untyped_storage().nbytes() % size
    return torch.cat([unowned.repeat_interleave(size), torch.ones(rest, dtype=torch.bool)])


def _ranges(mask: torch.Tensor) -> Iterator[tuple[int, int]]:
    """The first byte and the number of bytes of each range where the mask is true."""
    edges = torch.diff(mask.to(torch.int8), prepend=torch.zeros(1), append=torch.zeros(1)).nonzero().flatten()
    for begin, end in edges.view(-1, 2).tolist():
        yield begin, end - begin


class Neighbour:
    """Writes to every byte that is not the tensor's, on its own stream: first now, then in the block before
    each call of the SDK that may write, each time another value.

    ``lost_bytes()`` counts the bytes of the last write that have been overwritten.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self._storage = tensor.untyped_storage()
        self._unowned = _unowned(tensor)
        self._ranges = list(_ranges(self._unowned))
        self._stream = torch.musa.Stream(device=tensor.device)
        self._device = tensor.device
        self._sdk = loaded_sdk()
        self.value = 0
        self.write()

    def write(self) -> None:
        self.value = self.value % 250 + 1
        stream = ctypes.c_void_p(self._stream.musa_stream)
        for begin, length in self._ranges:
            address = ctypes.c_void_p(self._storage.data_ptr() + begin)
            check(self._sdk.musaMemsetAsync(address, self.value, ctypes.c_size_t(length), stream))
        check(self._sdk.musaStreamSynchronize(stream))

    def beside(self):
        """The block in which the neighbour writes."""
        return observed_calls(
            lambda name, ended: self.write() if not ended and name.startswith(_WRITES) else None
        )

    def lost_bytes(self) -> int:
        torch.musa.synchronize(self._device)
        stored = torch.empty(0, dtype=torch.uint8, device=self._device).set_(self._storage).cpu()
        return int((stored[self._unowned] != self.value).sum())
