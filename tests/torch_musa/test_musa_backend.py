# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.musa` and `torch.version.musa`: torch's own settings, and the SDK's version."""

from __future__ import annotations

import pytest
import torch

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once


def test_it_exists_and_initializes_no_device():
    code = """
    import torch, torch.backends.musa
    print(torch.backends.musa.is_built(), torch.backends.musa.matmul.allow_tf32, torch.musa.is_initialized())
    """
    assert run_code(code, fresh=True) == "True False False\n"


def test_the_setting_is_torchs():
    code = """
    import torch
    torch.backends.musa.matmul.allow_tf32 = True
    print(torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32)
    torch.set_float32_matmul_precision("highest")
    print(torch.backends.musa.matmul.allow_tf32)
    """
    assert run_code(code) == "high True\nFalse\n"


def test_other_values_and_names_are_refused():
    with pytest.raises(
        TypeError, match=r"torch\.backends\.musa\.matmul\.allow_tf32 must be a bool, but got int"
    ):
        torch.backends.musa.matmul.allow_tf32 = 1
    with pytest.raises(AttributeError, match="allow_tf23"):
        torch.backends.musa.matmul.allow_tf23 = True
    assert torch.backends.musa.matmul.allow_tf32 is False


def test_a_module_of_that_name_stays():
    code = """
    import torch, types
    torch.backends.musa = mine = types.ModuleType("mine")
    import torch_musa
    print(torch.backends.musa is mine)
    """
    assert run_code(code, fresh=True, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "True\n"


def test_the_version_is_the_sdk_s_and_initializes_no_device():
    code = """
    import torch
    print(torch.version.musa, torch.musa.is_initialized())
    number = torch.musa.musart and __import__("musa_runtime")._C.runtime_version()
    print(f"{number // 10000}.{number // 100 % 100}")
    """
    first, second = run_code(code, fresh=True).splitlines()
    assert first == f"{second} False"


def test_without_the_sdk_there_is_no_version():
    code = "import torch; print(hasattr(torch.version, 'musa'), torch.version.musa)"
    assert run_code(code, fresh=True, MUSA_HOME="/nonexistent/musa") == "True None\n"


def test_a_version_that_exists_stays():
    code = """
    import torch
    torch.version.musa = "1.0"
    import torch_musa
    print(torch.version.musa)
    """
    assert run_code(code, fresh=True, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "1.0\n"


def test_the_names_are_those_of_torch_backends_cuda():
    import inspect

    ours, theirs = torch.backends.musa, torch.backends.cuda
    for name in (
        *("is_built", "preferred_linalg_library", "preferred_blas_library", "sdp_kernel"),
        *("enable_flash_sdp", "enable_mem_efficient_sdp", "enable_math_sdp", "enable_cudnn_sdp"),
        *("flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled"),
        *("allow_fp16_bf16_reduction_math_sdp", "fp16_bf16_reduction_math_sdp_allowed"),
    ):
        parameters = [list(inspect.signature(getattr(of, name)).parameters) for of in (ours, theirs)]
        if name != "sdp_kernel":  # torch's is wrapped for its deprecation
            assert parameters[0] == parameters[1], name
        assert name in dir(ours)
    with pytest.raises(AttributeError, match="no attribute 'enable_flesh_sdp'"):
        ours.enable_flesh_sdp  # noqa: B018


@pytest.mark.parametrize(
    "name",
    [
        "allow_tf32",
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    ],
)
def test_a_setting_of_products_is_torchs(name):
    ours, theirs = torch.backends.musa.matmul, torch.backends.cuda.matmul
    before = getattr(ours, name)
    try:
        for value in (not before, before):
            setattr(ours, name, value)
            assert getattr(ours, name) is value and getattr(theirs, name) == value
        with pytest.raises(TypeError, match=f"{name} must be a bool, but got str"):
            setattr(ours, name, "yes")
    finally:
        setattr(ours, name, before)


def test_the_precision_of_products_is_torchs():
    code = """
    import torch
    torch.backends.musa.matmul.fp32_precision = "tf32"
    print(torch.backends.cuda.matmul.fp32_precision, torch.backends.musa.matmul.allow_tf32)
    """
    assert run_code(code) == "tf32 True\n"


def test_one_library_is_preferred():
    musa = torch.backends.musa
    for name, library in (("preferred_linalg_library", "magma"), ("preferred_blas_library", "cublaslt")):
        prefer = getattr(musa, name)
        assert prefer() == prefer("default") == prefer(prefer())
        with pytest.raises(
            RuntimeError, match=f"{name}\\('{library}'\\): the musa device has one library(.|\n)*Fix:"
        ):
            prefer(library)


ATTENTION = """
import torch
from torch.profiler import profile
x = torch.randn(1, 2, 8, 16, device="musa")
def fused():
    with profile() as found:
        torch.nn.functional.scaled_dot_product_attention(x, x, x)
    return any("fused" in event.name or "flash" in event.name for event in found.events())
musa = torch.backends.musa
print(fused())
musa.enable_flash_sdp(False); musa.enable_mem_efficient_sdp(False)
print(fused(), musa.flash_sdp_enabled(), torch.backends.cuda.mem_efficient_sdp_enabled())
musa.enable_cudnn_sdp(False)
print(fused())
musa.enable_flash_sdp(True)
print(fused())
with musa.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False, enable_cudnn=False):
    print(fused())
print(fused(), musa.flash_sdp_enabled(), musa.cudnn_sdp_enabled(), musa.math_sdp_enabled())
musa.enable_flash_sdp(False); musa.enable_math_sdp(False)
try:
    fused()
except RuntimeError as error:
    print(str(error)[:19])
"""


def test_attention_obeys_the_switches():
    assert run_code(ATTENTION).splitlines() == [
        "True",
        "True False False",
        "False",
        "True",
        "False",
        "True True False True",
        "No viable backend f",
    ]
