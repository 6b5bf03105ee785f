# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.current_blas_handle`: a muBLAS handle per thread and device, set to the current stream."""

from __future__ import annotations

import ctypes
import threading

import pytest
import torch

from musa_runtime import blas_handles, sdk
from musa_runtime.errors import LibraryLoadError, SdkCallError

pytestmark = [pytest.mark.once, pytest.mark.needs("musa-emulator-math")]


def stream_of(handle: int) -> int:
    stream = ctypes.c_void_p()
    assert blas_handles._library().mublasGetStream(ctypes.c_void_p(handle), ctypes.byref(stream)) == 0
    return stream.value or 0


def handle_of_a_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.musa.current_blas_handle()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_has_one_handle_and_it_follows_the_stream(musa) -> None:
    handle = musa.current_blas_handle()
    assert handle and musa.current_blas_handle() == handle
    with musa.stream(musa.Stream()) as _:
        assert musa.current_blas_handle() == handle
        assert stream_of(handle) == musa.current_stream().musa_stream != 0
    assert musa.current_blas_handle() == handle and stream_of(handle) == 0


def test_the_handle_of_a_thread_that_ended_is_used_again(musa) -> None:
    first = handle_of_a_thread()
    assert first != musa.current_blas_handle() and handle_of_a_thread() == first


def test_each_device_has_its_own(musa) -> None:
    if musa.device_count() > 1:
        with musa.device(1):
            other = musa.current_blas_handle()
        assert other != musa.current_blas_handle()


def test_without_mublas_the_error_names_the_wheel(musa, monkeypatch, tmp_path) -> None:
    class Found:
        home = str(tmp_path)

    blas_handles._library.cache_clear()
    monkeypatch.setattr(sdk, "resolve", lambda: Found)
    with pytest.raises(
        LibraryLoadError, match=r"(?s)there is no .*libmublas.*Fix: .*pip install .*musa-emulator-math"
    ):
        musa.current_blas_handle()


def test_a_refusal_of_mublas_raises() -> None:
    with pytest.raises(SdkCallError, match="mublasSetStream failed with status 7"):
        blas_handles._check(7, "mublasSetStream")
