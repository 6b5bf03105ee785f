# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Legacy types of sparse COO tensors, such as `torch.musa.sparse.FloatTensor(indices, values, size)`."""

from typing import TYPE_CHECKING

import torch

from .legacy_types import _TENSOR_DTYPES, _tensor_type

if TYPE_CHECKING:  # the types that are made below

    class BFloat16Tensor(torch.Tensor): ...

    class ByteTensor(torch.Tensor): ...

    class CharTensor(torch.Tensor): ...

    class DoubleTensor(torch.Tensor): ...

    class FloatTensor(torch.Tensor): ...

    class HalfTensor(torch.Tensor): ...

    class IntTensor(torch.Tensor): ...

    class LongTensor(torch.Tensor): ...

    class ShortTensor(torch.Tensor): ...


_TYPES = {
    name: _tensor_type(name, dtype, torch.sparse_coo, "torch.musa.sparse")
    for name, dtype in _TENSOR_DTYPES.items()
    if dtype is not torch.bool
}
globals().update(_TYPES)

__all__ = sorted(_TYPES)
