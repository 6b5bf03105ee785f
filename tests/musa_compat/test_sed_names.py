# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Names of torch.cuda and torch.backends.cuda, with "cuda" replaced by "musa", exist or have a hint."""

from __future__ import annotations

import importlib
import types

import pytest
import torch
import torch.backends.cuda
import torch.backends.cudnn

from tests.torch_musa.cuda_names import names_of
from torch_musa import cuda_names

pytestmark = [pytest.mark.once, pytest.mark.needs("musa-ops-math"), pytest.mark.needs("musa-amp")]

# Names that are neither, each with the reason.
LISTED = {
    "torch.cuda": {
        "profiler.DEFAULT_FLAGS": "options of cudaProfilerInitialize, which CUDA has dropped",
    },
    "torch.backends.cudnn": {
        "CUDNN_TENSOR_DTYPES": "the dtypes of is_acceptable",
        "CudnnModule": "the class of the module",
        "is_acceptable": "torch's recurrent networks call it for CUDA tensors only",
    },
    "torch.backends.cuda": {
        "cuFFTPlanCache": "a class behind cufft_plan_cache, which programs do not name",
        "cuFFTPlanCacheAttrContextProp": "a class behind cufft_plan_cache",
        "cuFFTPlanCacheManager": "a class behind cufft_plan_cache",
    },
}


def sed(name: str) -> str:
    return name.replace("cuda", "musa")


def public(module: types.ModuleType) -> list[str]:
    """Names that a module of torch.backends does not import for its own use."""
    module = getattr(module, "m", module)  # torch.backends.cudnn wraps the module of that name
    return [
        name
        for name in dir(module)
        if not name.startswith("_")
        and not isinstance(getattr(module, name), types.ModuleType)
        and getattr(getattr(module, name), "__module__", None)
        in (None, "torch._C", "torch.backends.cuda", "torch.backends.cudnn")
    ]


def answer(module: object, name: str) -> str:
    """How a module answers a dotted name: "served", "advice" or "missing"."""
    for part in name.split("."):
        try:
            module = getattr(module, part)
        except AttributeError as error:
            return "advice" if "\nFix: " in str(error) else "missing"
    return "served"


CASES = {
    "torch.cuda": (torch.musa, names_of(torch.cuda)),
    "torch.backends.cuda": (torch.backends.musa, public(torch.backends.cuda)),
    "torch.backends.cudnn": (torch.backends.mudnn, public(torch.backends.cudnn)),
}


@pytest.mark.parametrize("cuda", CASES)
def test_each_name_is_served_or_refused_with_advice(cuda, capsys):
    musa, names = CASES[cuda]
    answers = {name: answer(musa, sed(name)) for name in names}
    missing = sorted(name for name, kind in answers.items() if kind == "missing")
    counts = {kind: list(answers.values()).count(kind) for kind in ("served", "advice", "missing")}
    with capsys.disabled():
        print(f"\n{cuda} after the replacement: {counts}")
    assert set(missing) <= set(LISTED[cuda]) <= set(names) and counts["served"] >= 4


@pytest.mark.parametrize("module", ["torch.musa", "torch.backends.musa"])
def test_advice_is_for_names_that_are_missing(module):
    for name in cuda_names.advised(module):
        with pytest.raises(AttributeError, match=rf"{module}' has no attribute '{name}': (.|\n)+\nFix: \w+"):
            getattr(importlib.import_module(module), name)
    assert cuda_names.advice(module, "imaginary") is None


def test_an_import_of_a_submodule_has_the_advice_too():
    with pytest.raises(ModuleNotFoundError, match=r"cuBLAS\.\nFix: remove the calls"):
        importlib.import_module("torch.musa.tunable")


def test_methods_and_settings_have_both_names():
    for kind in (torch.Tensor, torch.nn.Module, torch.UntypedStorage, torch.TypedStorage):
        names = [name for name in dir(kind) if "cuda" in name and not name.startswith("_")]
        assert names and [name for name in names if not hasattr(kind, sed(name))] == []


def test_aliases_are_the_same_objects(musa):
    assert musa.CUDAGraph is musa.MUSAGraph is musa.graphs.CUDAGraph
    assert musa.CUDAPluggableAllocator is musa.memory.CUDAPluggableAllocator is musa.MUSAPluggableAllocator
    assert musa.CudaError is musa.MusaError and musa.DeferredCudaCallError is musa.DeferredMusaCallError
    assert importlib.import_module("torch.musa.nvtx") is musa.nvtx is musa.mttx
    assert importlib.import_module("torch.musa._memory_viz") is torch.cuda._memory_viz
    assert torch.backends.musa.cufft_plan_cache is torch.backends.musa.fft_plan_cache
    assert musa.amp.autocast_mode.autocast is musa.amp.autocast
    assert importlib.import_module("torch.musa.amp.grad_scaler").GradScaler is musa.amp.GradScaler


@pytest.mark.needs("musa-distributed")
def test_nccl_is_mccl(musa):
    assert musa.nccl is musa.mccl
    with pytest.raises(AttributeError, match=r"Fix: use torch\.distributed\.all_reduce"):
        musa.nccl.all_reduce  # noqa: B018


@pytest.mark.needs("musa-ops-mudnn")
def test_attention_can_use_the_fused_kernel_that_the_switches_allow(musa):
    backends = torch.backends.musa
    query = torch.ones(1, 2, 8, 16, device="musa", dtype=torch.float16)
    params = backends.SDPAParams(query, query, query, None, 0.0, True, False)
    on_cpu = backends.SDPAParams(*[query.cpu()] * 3, None, 0.0, True, False)
    assert backends.is_flash_attention_available() and backends.can_use_flash_attention(params)
    assert backends.can_use_efficient_attention(params) and not backends.can_use_flash_attention(on_cpu)
    with backends.sdp_kernel(enable_flash=False):
        assert not backends.can_use_flash_attention(params) and backends.can_use_efficient_attention(params)
        assert not backends.is_flash_attention_available()
    with backends.sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_cudnn=False):
        assert not backends.can_use_cudnn_attention(params)
