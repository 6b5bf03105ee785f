# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tensors of raw pointers, as C++ code makes them: their device is that of the memory."""

import contextlib
import ctypes
from pathlib import Path

import pytest
import torch

from tests.harness.emulator import loaded_sdk

NBYTES = 1 << 12


def _library():
    """The C functions of torch that at::from_blob is called through."""
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


def device_of_blob(pointer, index=-1):
    """The index of the device of a tensor that is made of a pointer; None if the pointer is refused.

    With index -1, the call names no device.
    """
    torch_cpu = _library()
    size, stride, handle, found = ctypes.c_int64(16), ctypes.c_int64(1), ctypes.c_void_p(), ctypes.c_int32()
    types = torch_cpu.aoti_torch_dtype_uint8(), torch_cpu.aoti_torch_device_type_privateuse1()
    failed = torch_cpu.aoti_torch_create_tensor_from_blob(
        ctypes.c_void_p(pointer),
        ctypes.c_int64(1),
        ctypes.byref(size),
        ctypes.byref(stride),
        ctypes.c_int64(0),
        *types,
        index,
        ctypes.byref(handle),
    )
    if failed:
        return None
    assert torch_cpu.aoti_torch_get_device_index(handle, ctypes.byref(found)) == 0
    assert torch_cpu.aoti_torch_delete_tensor_object(handle) == 0
    return found.value


@contextlib.contextmanager
def _of_the_sdk(allocate, free, *flags):
    """Memory that is allocated directly with the SDK, on the current device."""
    sdk, pointer = loaded_sdk(), ctypes.c_void_p()
    assert getattr(sdk, allocate)(ctypes.byref(pointer), ctypes.c_size_t(NBYTES), *flags) == 0
    yield pointer.value
    assert getattr(sdk, free)(pointer) == 0


@contextlib.contextmanager
def _of_a_tensor(offset=0, setting=None):
    """Memory of the caching allocator, on the current device."""
    if setting:
        torch.musa.empty_cache()  # so that the setting has its effect
        torch._C._accelerator_setAllocatorSettings(f"{setting}:True")
    try:
        memory = torch.empty(NBYTES, dtype=torch.uint8, device="musa")
        yield memory.data_ptr() + offset
        del memory
    finally:
        if setting:
            torch.musa.empty_cache()
            torch._C._accelerator_setAllocatorSettings(f"{setting}:False")


MEMORY = {
    "a tensor": _of_a_tensor,
    "inside a tensor": lambda: _of_a_tensor(offset=NBYTES // 2),
    "expandable segments": lambda: _of_a_tensor(setting="expandable_segments"),
    "musaMalloc": lambda: _of_the_sdk("musaMalloc", "musaFree"),
    "musaMallocManaged": lambda: _of_the_sdk("musaMallocManaged", "musaFree", 1),
}


@pytest.mark.parametrize("memory", MEMORY.values(), ids=MEMORY)
@pytest.mark.parametrize("owner", [0, 1])
def test_a_pointer_is_of_the_device_of_its_memory(two_devices, memory, owner):
    with contextlib.ExitStack() as held:
        with two_devices.device(owner):
            pointer = held.enter_context(memory())
        for current in (0, 1):
            with two_devices.device(current):
                assert device_of_blob(pointer) == owner, f"with musa:{current} current"
                assert device_of_blob(pointer, owner) == owner
                assert two_devices.current_device() == current


@pytest.mark.parametrize("memory", ["musaMalloc", "a tensor"])
def test_a_pointer_to_memory_of_another_device_is_refused(two_devices, memory):
    with MEMORY[memory]() as pointer:
        assert device_of_blob(pointer, 1) is None
        assert device_of_blob(pointer, 0) == 0


@pytest.mark.parametrize("pinned", [False, True])
def test_a_pointer_to_host_memory_is_refused(musa, pinned):
    memory = torch.empty(NBYTES, dtype=torch.uint8, pin_memory=pinned)
    assert device_of_blob(memory.data_ptr()) is None
    assert torch.ones(2, device="musa").sum().item() == 2
