# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Digests of tensors, which are equal for tensors of equal bits, shape and dtype."""

from __future__ import annotations

import ctypes
import hashlib

import torch


def digest(tensor: torch.Tensor) -> bytes | None:
    """Returns 8 bytes for a tensor's dtype, shape and elements; None if its layout is not strided."""
    if (
        tensor.layout is not torch.strided
        or tensor.device.type == "meta"
        or tensor.is_nested
        or tensor.is_quantized
    ):
        return None
    data = tensor.detach().resolve_conj().resolve_neg().contiguous().cpu()
    state = hashlib.blake2b(f"{data.dtype}{tuple(data.shape)}".encode(), digest_size=8)
    size = data.numel() * data.element_size()
    if size:
        state.update((ctypes.c_char * size).from_address(data.data_ptr()))
    return state.digest()
