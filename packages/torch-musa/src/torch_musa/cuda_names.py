# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Advice for names of torch.cuda and torch.backends.cuda that musa does not have.

A program in which "cuda" was replaced by "musa" reads these names. Errors for them say what to write instead.
"""

from __future__ import annotations

# module -> name -> (why it is missing, what to write)
_ADVICE = {
    "torch.musa": {
        "DEVICE_REQUIREMENT": (
            "a table of the NVIDIA devices of torch's wheels",
            "read torch.musa.get_arch_list() and torch.musa.get_device_capability()",
        ),
        "GreenContext": (
            "partitions of the multiprocessors need driver calls of MUSA SDK 5.1",
            "use streams with priorities, torch.musa.Stream(priority=-1)",
        ),
        "classproperty": (
            "a helper that torch.cuda imports",
            "write from torch._utils import classproperty",
        ),
        "current_solver_handle": (
            "the runtime has no handle of muSOLVER",
            "call torch.linalg, or create a handle with musolverDnCreate in an extension",
        ),
        "gds": (
            "it reads files through NVIDIA's cuFile",
            "use torch.UntypedStorage.from_file or torch.load(mmap=True), and copy to the device",
        ),
        "has_magma": (
            "MAGMA is a library for CUDA and HIP",
            "remove the test: torch.linalg works on musa without MAGMA",
        ),
        "jiterator": (
            "it compiles CUDA source text with NVRTC",
            "use torch.compile, or a kernel in a .mu file with torch_musa.utils.cpp_extension.load",
        ),
        "tunable": (
            "it chooses among algorithms of cuBLAS",
            "remove the calls: the libraries of the MUSA SDK choose their algorithms",
        ),
    },
    "torch.backends.musa": {
        "cuBLASModule": ("a type of cuBLAS settings", "read torch.backends.musa.matmul"),
        "cublas_workspace_size": (
            "muBLAS has no workspace that torch sets",
            "remove the call; packs allocate workspaces through the caching allocator",
        ),
        "is_ck_sdpa_available": (
            "Composable Kernel is a library of ROCm",
            "use torch.nn.functional.scaled_dot_product_attention, which chooses the fused kernel",
        ),
    },
}
_SAME = {
    "torch.musa": {
        "PYTORCH_RELEASES_CODE_CC": "DEVICE_REQUIREMENT",
        "green_contexts": "GreenContext",
    },
    "torch.backends.musa": {
        "blas_workspace_size": "cublas_workspace_size",
        "cublaslt_workspace_size": "cublas_workspace_size",
        "preferred_rocm_fa_library": "is_ck_sdpa_available",
    },
}


def advice(module: str, name: str) -> str | None:
    """Returns why a module lacks a name of CUDA and what to write instead, or None if it is no such name.

    Args:
        module (str): "torch.musa" or "torch.backends.musa".
        name (str): the name after "cuda" was replaced by "musa".
    """
    reason = _ADVICE[module].get(_SAME[module].get(name, name))
    if reason is None:
        return None
    why, fix = reason
    return f"module {module!r} has no attribute {name!r}: {why}.\nFix: {fix}"


def advised(module: str) -> list[str]:
    """Returns the names of a module that have advice."""
    return sorted({*_ADVICE[module], *_SAME[module]})
