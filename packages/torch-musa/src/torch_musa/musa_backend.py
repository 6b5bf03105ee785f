# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.musa`: settings of matrix products, attention and linear algebra.

The names are those of `torch.backends.cuda`. The settings are torch's own for its accelerators, so
`torch.backends.cuda` and functions of torch change them too.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import torch.backends

if TYPE_CHECKING:
    from collections.abc import Callable


def _setting(name: str, getter: Callable[[], bool], setter: Callable[[bool], object], doc: str) -> Any:
    """Returns a property of `Products` for a bool setting of torch."""

    def write(self: object, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(
                f"torch.backends.musa.matmul.{name} must be a bool, but got {type(value).__name__}"
            )
        setter(value)

    return property(lambda self: getter(), write, doc=doc)


def _reduction(dtype: str) -> Any:
    """Returns the property for products of a 16-bit dtype, the first of two values that torch stores."""
    name = f"allow_{dtype}_reduced_precision_reduction"
    get, put = getattr(torch._C, f"_get_cublas_{name}"), getattr(torch._C, f"_set_cublas_{name}")

    def first() -> bool:
        value = get()
        return value[0] if isinstance(value, tuple) else value  # torch before 2.12 has one value

    return _setting(
        name,
        first,
        put,
        f"bool: whether products of {dtype} may accumulate partial sums in {dtype}. torch's setting, True by "
        "default. A permission: no musa library is known to have such an option.",
    )


class Products:
    """Settings of matrix products, `torch.backends.musa.matmul`."""

    if not TYPE_CHECKING:  # type checkers would refuse assignments to the settings
        __slots__ = ()

    allow_tf32: bool = _setting(
        "allow_tf32",
        # torch's older function raises an error if a program has used the newer interface,
        # fp32_precision.
        lambda: torch._C._get_fp32_precision_getter("cuda", "matmul") == "tf32",
        torch._C._set_cublas_allow_tf32,
        """bool: whether float32 products may round their operands to TF32.

        This is torch's setting for its accelerators, which `torch.set_float32_matmul_precision` and
        `torch.backends.cuda.matmul.allow_tf32` change too. False by default. It applies to packs whose
        libraries support TF32; such a pack may have its own setting in `torch.backends`.
        """,
    )
    allow_fp16_reduced_precision_reduction: bool = _reduction("fp16")
    allow_bf16_reduced_precision_reduction: bool = _reduction("bf16")
    allow_fp16_accumulation: bool = _setting(
        "allow_fp16_accumulation",
        torch._C._get_cublas_allow_fp16_accumulation,
        torch._C._set_cublas_allow_fp16_accumulation,
        "bool: whether float16 products may accumulate in float16. torch's setting, False by default.",
    )

    @property
    def fp32_precision(self) -> str:
        """str: `"tf32"`, `"ieee"`, or `"none"`, which means `torch.backends.fp32_precision`."""
        return torch._C._get_fp32_precision_getter("cuda", "matmul")

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        torch._C._set_fp32_precision_setter("cuda", "matmul", value)


def _one_library(name: str, kind: str, backend: Any, current: Any) -> Any:
    default = type(current).Default
    if backend in (None, "default", default, current):
        return current
    raise RuntimeError(
        f"torch.backends.musa.{name}({backend!r}): the musa device has one library for {kind}; a preference "
        "has no effect.\nFix: pass 'default', or omit the call"
    )


# Names of torch.backends.cuda that this module has under another name, and classes of torch.
_OTHER_NAMES = {"cufft_plan_cache": "fft_plan_cache"}
_CLASSES = {"SDPAParams": "_SDPAParams", "SDPBackend": "_SDPBackend"}


class MusaBackend(types.ModuleType):
    """The module `torch.backends.musa`.

    Attributes:
        matmul (Products): settings of matrix products.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, __doc__)
        self.matmul = Products()

    def __getattr__(self, name: str) -> Any:
        # The attention switches are imported on first access to a name that this module lacks.
        missing = None
        if not name.startswith("_"):
            from . import attention_switches, cuda_names

            for function in attention_switches.FUNCTIONS:
                if function.__name__ == name:
                    return function
            if name in _OTHER_NAMES:
                return getattr(self, _OTHER_NAMES[name])
            if name in _CLASSES:
                return getattr(torch._C, _CLASSES[name])
            missing = cuda_names.advice("torch.backends.musa", name)
        raise AttributeError(missing or f"module 'torch.backends.musa' has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        from . import attention_switches

        switches = (function.__name__ for function in attention_switches.FUNCTIONS)
        return sorted({*super().__dir__(), *dir(type(self)), *switches})

    def is_built(self) -> bool:
        """Returns True. See `torch.musa.is_available()` for whether there is a GPU."""
        return True

    def preferred_linalg_library(
        self, backend: str | torch._C._LinalgBackend | None = None
    ) -> torch._C._LinalgBackend:
        """Returns the linear algebra library, like `torch.backends.cuda.preferred_linalg_library`.

        Args:
            backend (str or torch._C._LinalgBackend, optional): `"default"`, the only choice.

        Raises:
            RuntimeError: for any other library.
        """
        current = torch._C._get_linalg_preferred_backend()
        return _one_library("preferred_linalg_library", "linear algebra", backend, current)

    def preferred_blas_library(
        self, backend: str | torch._C._BlasBackend | None = None
    ) -> torch._C._BlasBackend:
        """Returns the matrix product library, like `torch.backends.cuda.preferred_blas_library`.

        Args:
            backend (str or torch._C._BlasBackend, optional): `"default"`, the only choice.

        Raises:
            RuntimeError: for any other library.
        """
        current = torch._C._get_blas_preferred_backend()
        return _one_library("preferred_blas_library", "products of matrices", backend, current)


def register() -> None:
    """Adds `torch.backends.musa`, unless another package has added it."""
    if not hasattr(torch.backends, "musa"):
        name = "torch.backends.musa"
        sys.modules[name] = torch.backends.musa = MusaBackend(name)  # type: ignore[attr-defined]
