# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks, called on first use of the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from musa_runtime.hookspecs import hookimpl

_library: Any = None  # torch.library.Library, which owns the fake rules and derivatives


@hookimpl
def musa_pack_info() -> dict[str, str]:
    return {
        "summary": "operators that serve language models: paged attention, fused norms, sampling, experts"
    }


@hookimpl
def musa_libraries() -> list[str]:
    return ["lib/libmusa_ops_serving.so"]


@hookimpl
def musa_register(musa: Any) -> None:
    from . import fakes, gradients

    global _library
    if _library is None:
        import torch

        _library = torch.library.Library("musa_serving", "FRAGMENT")
        fakes.register(_library)
        gradients.register(_library)


@hookimpl
def musa_doctor_checks() -> list[tuple[str, Callable[[], str]]]:
    return [("operators", _computes)]


def _computes() -> str:
    import torch

    key = torch.zeros(3, 1, 64, device="musa")
    value = torch.tensor([1.0, 2.0, 6.0], device="musa").view(3, 1, 1).expand(3, 1, 64)
    caches = torch.zeros(2, 2, 2, 1, 64, device="musa")
    slots = torch.tensor([2, 3, 0], device="musa")
    torch.ops.musa_serving.reshape_and_cache(key, value, *caches, slots)
    numbers = [torch.tensor(row, dtype=torch.int32, device="musa") for row in ([[1, 0]], [0, 1], [3])]
    out = torch.ops.musa_serving.paged_attention(key[:1], *caches, *numbers, 1, 3, scale=1.0)
    if (out - 3).abs().max().item() > 1e-5:
        raise AssertionError(
            f"paged_attention returned {out[0, 0, 0].item()}, expected the mean 3 of three values"
        )
    return "paged_attention returns the mean of three values of two blocks"
