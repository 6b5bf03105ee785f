# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa.musart(): direct SDK calls, whose codes check_error turns into exceptions."""

import copy
import ctypes
import pickle

import pytest
import torch

from musa_runtime.errors import SdkCallError


@pytest.fixture
def musart(musa):
    return musa.musart()


def test_success_is_no_error_and_a_code_is_one_that_names_itself(musa, musart):
    musa.check_error(0)
    musa.check_error(musart.musaError.success)
    for code in (2, musart.musaError(2), musart.musaError.errorMemoryAllocation):
        with pytest.raises(musa.MusaError, match=r"musaErrorMemoryAllocation \(2\): ") as told:
            musa.check_error(code)
        assert told.value.code == 2 and type(told.value) is SdkCallError
    with pytest.raises(musa.MusaError, match=str(musa.musaStatus.ERROR_NOT_READY)):
        musa.check_error(musa.musaStatus.ERROR_NOT_READY)


def test_an_error_survives_pickle_and_copy():
    error = SdkCallError(7, "musaErrorX (7): text")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert again.code == 7 and str(again) == str(error)


def test_texts_of_codes(musart):
    assert musart.musaGetErrorName(musart.musaError.success) == "musaSuccess"
    assert musart.musaGetErrorName(musart.musaError.errorNotReady) == "musaErrorNotReady"
    assert musart.musaGetErrorString(musart.musaError.errorNotReady)


def test_memory_of_the_program_can_be_pinned(musa, musart):
    host = torch.arange(4096.0)
    nbytes = host.numel() * host.element_size()
    musa.check_error(musart.musaHostRegister(host.data_ptr(), nbytes, 0))
    try:
        assert host.is_pinned()
        assert torch.equal(host.to("musa", non_blocking=True).cpu(), host)
        again = musart.musaHostRegister(host.data_ptr(), nbytes, 0)
        assert again != musart.musaError.success
    finally:
        musa.check_error(musart.musaHostUnregister(host.data_ptr()))
    assert not host.is_pinned()
    # A refused call leaves no error that the next call would report.
    assert torch.ones(2, device="musa").sum().item() == 2


def test_streams_created_by_direct_calls(musa, musart):
    handle = ctypes.c_void_p()
    musa.check_error(musart.musaStreamCreate(ctypes.addressof(handle)))
    stream = musa.ExternalStream(handle.value)
    with musa.stream(stream):
        x = torch.ones(64, device="musa") + 1
    stream.synchronize()
    assert x.cpu().eq(2).all()
    del x
    musa.synchronize()
    musa.empty_cache()
    musa.check_error(musart.musaStreamDestroy(handle.value))


def test_memory_figures_are_those_of_torch_musa(musa, musart):
    assert musart.musaMemGetInfo(0) == musa.mem_get_info(0)


def test_the_profiler_can_be_switched(musa, musart):
    musa.check_error(musart.musaProfilerStart())
    musa.check_error(musart.musaProfilerStop())


def test_names_of_older_programs(musa):
    assert musa.has_half is True
    assert musa.get_gencode_flags() == " ".join(f"--offload-arch={arch}" for arch in musa.get_arch_list())
    assert musa.is_tf32_supported() == (musa.get_device_capability() >= (2, 2))
    assert issubclass(musa.DeferredMusaCallError, musa.MusaError)


def test_sleep_keeps_the_stream_busy(musa):
    import time

    start = time.perf_counter()
    musa._sleep(int(musa.get_device_properties().clock_rate * 1e3 * 0.05))
    musa.synchronize()
    assert time.perf_counter() - start >= 0.045


def test_properties_name_the_device_for_good(two_devices):
    first, second = (two_devices.get_device_properties(index) for index in range(2))
    if first.uuid is not None:  # an SDK whose properties have no identifier gives None
        assert first.uuid != second.uuid and len(first.uuid.bytes) == 16
    assert (first.pci_domain_id, first.pci_bus_id, first.pci_device_id) != (
        second.pci_domain_id,
        second.pci_bus_id,
        second.pci_device_id,
    )
    assert first.regs_per_block > 0 and isinstance(first.ecc_enabled, bool)
