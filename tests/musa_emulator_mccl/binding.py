# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""MCCL through ctypes, with the calls of a C program: device memory, streams, communicators."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import torch

import musa_emulator

_LIBRARIES = musa_emulator.home() / "lib"
rt = ctypes.CDLL(str(_LIBRARIES / "libmusart.so"))
mccl = ctypes.CDLL(str(_LIBRARIES / "libmccl.so"))
mccl.mcclGetErrorString.restype = ctypes.c_char_p
rt.musaGetErrorName.restype = ctypes.c_char_p

SUCCESS, UNHANDLED, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE = range(7)
SUM, PROD, MAX, MIN, AVG = range(5)

# In the order of mcclDataType_t.
DTYPES = [
    torch.int8, torch.uint8, torch.int32, torch.uint32, torch.int64, torch.uint64,
    torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def ok(status: int) -> None:
    assert status == 0, rt.musaGetErrorName(status).decode()


def fine(result: int) -> None:
    assert result == SUCCESS, mccl.mcclGetErrorString(result).decode()


def size(count: int) -> ctypes.c_size_t:
    return ctypes.c_size_t(count)


class Buffer:
    """A copy of a tensor in memory of the current device."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.like = tensor.contiguous()
        self.bytes = self.like.numel() * self.like.element_size()
        self.pointer = ctypes.c_void_p()
        ok(rt.musaMalloc(ctypes.byref(self.pointer), size(max(self.bytes, 1))))
        ok(rt.musaMemcpy(self.pointer, ctypes.c_void_p(self.like.data_ptr()), size(self.bytes), 1))

    def part(self, element: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.pointer.value + element * self.like.element_size())

    def get(self) -> torch.Tensor:
        """Waits for the device, then returns the contents."""
        ok(rt.musaDeviceSynchronize())
        out = torch.empty_like(self.like)
        ok(rt.musaMemcpy(ctypes.c_void_p(out.data_ptr()), self.pointer, size(self.bytes), 2))
        return out

    @property
    def dtype(self) -> int:
        return DTYPES.index(self.like.dtype)

    @property
    def count(self) -> ctypes.c_size_t:
        return size(self.like.numel())


def make_stream() -> ctypes.c_void_p:
    stream = ctypes.c_void_p()
    ok(rt.musaStreamCreateWithFlags(ctypes.byref(stream), 1))
    return stream


def finished(stream: ctypes.c_void_p) -> bool:
    return rt.musaStreamQuery(stream) == 0


def wait_until(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition is still false after {seconds} s"
        time.sleep(0.01)


def async_error(comm: ctypes.c_void_p) -> int:
    error = ctypes.c_int(-1)
    fine(mccl.mcclCommGetAsyncError(comm, ctypes.byref(error)))
    return error.value


# ---- ranks in separate processes: see processes.py

RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def unique_id(name: str = "id") -> UniqueId:
    """Rank 0 creates the id; the others read it from the folder that all ranks share."""
    path = Path(os.environ["MCCL_TEST_FOLDER"], name)
    unique = UniqueId()
    if RANK == 0:
        fine(mccl.mcclGetUniqueId(ctypes.byref(unique)))
        path.with_suffix(".part").write_bytes(bytes(unique))
        path.with_suffix(".part").rename(path)
    else:
        wait_until(path.exists)
        ctypes.memmove(ctypes.byref(unique), path.read_bytes(), 128)
    return unique


def join(name: str = "id") -> ctypes.c_void_p:
    """Returns this rank's communicator, on the device whose index is the rank."""
    ok(rt.musaSetDevice(RANK))
    comm = ctypes.c_void_p()
    fine(mccl.mcclCommInitRank(ctypes.byref(comm), RANKS, unique_id(name), RANK))
    return comm


def values_of(rank: int, dtype: torch.dtype, count: int) -> torch.Tensor:
    """Returns a rank's operand: small numbers, whose sums and products every dtype represents exactly."""
    return (torch.arange(count).add(rank).remainder(3) + 1).to(dtype)
