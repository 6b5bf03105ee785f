# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Legacy types of sparse COO tensors, such as `torch.musa.sparse.FloatTensor(indices, values, size)`."""

import torch

from .legacy_types import _TENSOR_DTYPES, _tensor_type

_TYPES = {
    name: _tensor_type(name, dtype, torch.sparse_coo, "torch.musa.sparse")
    for name, dtype in _TENSOR_DTYPES.items()
    if dtype is not torch.bool
}
globals().update(_TYPES)

__all__ = sorted(_TYPES)
