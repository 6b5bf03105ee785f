# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.FloatTensor`, `torch.musa.FloatStorage` and similar types, for programs from before
`torch.tensor(..., dtype=, device=)`.

They make ordinary tensors and storages, support `isinstance`, and can be passed to `Tensor.type()`. They
cannot be passed to `torch.set_default_tensor_type`, which accepts only torch's own types: use
`torch.set_default_device("musa")` and `torch.set_default_dtype`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.storage import _LegacyStorage

from . import device as _device
from .initialization import lazy_init

if TYPE_CHECKING:
    from typing import NoReturn

    from ._types import Device

_MODULE = "torch.musa"

_TENSOR_DTYPES = {
    "BFloat16Tensor": torch.bfloat16,
    "BoolTensor": torch.bool,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "DoubleTensor": torch.float64,
    "FloatTensor": torch.float32,
    "HalfTensor": torch.float16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "ShortTensor": torch.int16,
}
_STORAGE_DTYPES = {
    "BFloat16Storage": torch.bfloat16,
    "BoolStorage": torch.bool,
    "ByteStorage": torch.uint8,
    "CharStorage": torch.int8,
    "ComplexDoubleStorage": torch.complex128,
    "ComplexFloatStorage": torch.complex64,
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "IntStorage": torch.int32,
    "LongStorage": torch.int64,
    "ShortStorage": torch.int16,
}


class _LegacyTensorType(type):
    """The metaclass of the tensor types: calling one makes a tensor, not an instance."""

    # Set by `_tensor_type`.
    dtype: torch.dtype
    layout: torch.layout
    is_musa = True
    is_cuda = False

    @property
    def is_sparse(cls) -> bool:
        return cls.layout == torch.sparse_coo

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        lazy_init()
        # torch's legacy constructor accepts sizes, a sequence of values, a tensor or storage of this type, or
        # nothing.
        return cls._prototype(kwargs.pop("device", None)).new(*args, **kwargs)

    def _prototype(cls, device: Device) -> torch.Tensor:
        place: Any = {"dtype": cls.dtype, "device": torch.device("musa", _device.device_index(device))}
        if cls.is_sparse:
            return torch.sparse_coo_tensor(size=(0,), check_invariants=False, **place)
        return torch.empty(0, **place)

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.device.type == "musa"
            and instance.dtype == cls.dtype
            and instance.layout == cls.layout
        )


def _tensor_type(
    name: str, dtype: torch.dtype, layout: torch.layout = torch.strided, module: str = _MODULE
) -> type:
    # Tensor.type(T) reads the C name of a class, which is its __name__: it must be the full, dotted one.
    return _LegacyTensorType(
        f"{module}.{name}",
        (),
        {
            "__doc__": f"Tensors of {dtype} on a musa device; calling it is torch's legacy constructor.",
            "__module__": module,
            "__qualname__": name,
            "dtype": dtype,
            "layout": layout,
        },
    )


class _MusaLegacyStorage(_LegacyStorage):
    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Not supported: a buffer is in host memory."""
        raise RuntimeError(
            f"{cls.__module__}.{cls.__name__}.from_buffer: a buffer is in host memory.\n"
            "Fix: torch.frombuffer(buffer, dtype=...).musa()"
        )

    @classmethod
    def _new_with_weak_ptr(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("_new_with_weak_ptr exists for storages in host memory only")

    @classmethod
    def _new_shared_filename(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("_new_shared_filename exists for storages in host memory only")


def _storage_type(name: str, dtype: torch.dtype) -> type:
    # torch reads the device of a legacy storage class from the last part of its module's name.
    return type(
        name,
        (_MusaLegacyStorage,),
        {
            "__doc__": f"Storages of {dtype} on a musa device; calling it makes a `torch.TypedStorage`.",
            "__module__": _MODULE,
            "dtype": dtype,
            "_dtype": dtype,
        },
    )


if TYPE_CHECKING:  # the types that are made below

    class BFloat16Tensor(torch.Tensor): ...

    class BoolTensor(torch.Tensor): ...

    class ByteTensor(torch.Tensor): ...

    class CharTensor(torch.Tensor): ...

    class DoubleTensor(torch.Tensor): ...

    class FloatTensor(torch.Tensor): ...

    class HalfTensor(torch.Tensor): ...

    class IntTensor(torch.Tensor): ...

    class LongTensor(torch.Tensor): ...

    class ShortTensor(torch.Tensor): ...

    class BFloat16Storage(_MusaLegacyStorage): ...

    class BoolStorage(_MusaLegacyStorage): ...

    class ByteStorage(_MusaLegacyStorage): ...

    class CharStorage(_MusaLegacyStorage): ...

    class ComplexDoubleStorage(_MusaLegacyStorage): ...

    class ComplexFloatStorage(_MusaLegacyStorage): ...

    class DoubleStorage(_MusaLegacyStorage): ...

    class FloatStorage(_MusaLegacyStorage): ...

    class HalfStorage(_MusaLegacyStorage): ...

    class IntStorage(_MusaLegacyStorage): ...

    class LongStorage(_MusaLegacyStorage): ...

    class ShortStorage(_MusaLegacyStorage): ...


globals().update({name: _tensor_type(name, dtype) for name, dtype in _TENSOR_DTYPES.items()})
globals().update({name: _storage_type(name, dtype) for name, dtype in _STORAGE_DTYPES.items()})

__all__ = sorted([*_TENSOR_DTYPES, *_STORAGE_DTYPES])
