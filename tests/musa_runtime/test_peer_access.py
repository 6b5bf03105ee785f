# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Copies between devices are direct: the first one enables access to the other device's memory."""

import pytest

from tests.harness.subprocesses import run_code

_COPIES = """
import torch
from tests.harness.emulator import emulator_or_skip, loaded_sdk
sdk = emulator_or_skip()
musart = loaded_sdk()
def copy(source, target):
    x = torch.arange(1000.0, device=f"musa:{source}")
    assert torch.equal(x.to(f"musa:{target}").cpu(), torch.arange(1000.0))
    return sdk.calls("musaDeviceEnablePeerAccess"), sdk.calls("musaDeviceCanAccessPeer")
"""


def test_the_first_copy_enables_access_in_its_direction(two_devices):
    copies = "print(copy(0, 0), copy(0, 1), copy(0, 1), copy(1, 0), copy(0, 1), torch.musa.current_device())"
    assert run_code(_COPIES + copies) == "(0, 0) (1, 1) (1, 1) (2, 2) (2, 2) 0\n"


def test_access_that_another_library_enabled_is_no_error(two_devices):
    code = """
torch.musa.init()
print(musart.musaDeviceEnablePeerAccess(1, 0), end=" ")
print(copy(0, 1), copy(0, 1), musart.musaGetLastError())
"""
    assert run_code(_COPIES + code).split(") (") == ["0 (2, 1", "2, 1) 0\n"]


@pytest.mark.parametrize("call", ["musaDeviceCanAccessPeer", "musaDeviceEnablePeerAccess"])
def test_a_failure_is_raised_and_the_next_copy_tries_again(two_devices, call):
    code = """
try:
    copy(0, 1)
except torch.AcceleratorError as error:
    print(*[line for line in str(error).splitlines() if "call that failed" in line])
print(copy(0, 1)[0] - copy(0, 1)[0], torch.musa.current_device())
"""
    said, after = run_code(_COPIES + code, MUSA_EMULATOR_FAIL=f"{call}@1=musaErrorInvalidValue").splitlines()
    assert call in said
    assert after == "0 0"


def test_without_access_the_driver_copies(two_devices):
    """CUDA's limit of peers, for example, is no error of the program."""
    code = _COPIES + "print(copy(0, 1), copy(0, 1), musart.musaGetLastError())"
    fault = "musaDeviceEnablePeerAccess@1=musaErrorTooManyPeers"
    assert run_code(code, MUSA_EMULATOR_FAIL=fault) == "(1, 1) (1, 1) 0\n"


def test_memory_of_expandable_segments_is_accessible(two_devices):
    """Memory that is mapped before the first copy, and after it."""
    code = """
kept = torch.ones(1 << 20, device="musa:1")
def grants(step):
    before = sdk.calls("muMemSetAccess")
    result = step()
    return sdk.calls("muMemSetAccess") - before, result
x = torch.ones(1 << 20, device="musa:0")
first, second = (grants(lambda: kept.copy_(x))[0] for _ in range(2))
third, more = grants(lambda: torch.empty(1 << 28, dtype=torch.uint8, device="musa:1"))
copied = more[: 1 << 22].copy_(x.view(torch.uint8)).view(torch.float32)
print(first, second, third, copied.sum().item())
"""
    setting = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    assert run_code(_COPIES + code, **setting) == f"1 0 1 {1 << 20}.0\n"


def test_access_to_expandable_segments_that_fails_is_tried_again(two_devices):
    code = """
x, y = torch.ones(1 << 20, device="musa:0"), torch.zeros(1 << 20, device="musa:1")
sdk.fail_next("muMemSetAccess", 1)
try:
    y.copy_(x)
except torch.AcceleratorError as error:
    print("muMemSetAccess" in str(error), end=" ")
before = sdk.calls("muMemSetAccess")
y.copy_(x)
print(sdk.calls("muMemSetAccess") - before, y.sum().item() == 1 << 20)
"""
    setting = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    assert run_code(_COPIES + code, **setting) == "True 1 True\n"
