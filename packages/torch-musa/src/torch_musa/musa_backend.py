# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.musa`: settings of products, attention and linear algebra.

The names are those of `torch.backends.cuda`, and the settings torch's own for its accelerators:
`torch.backends.cuda` and functions of torch write them too.
"""

import sys
import types

import torch.backends


def _setting(name, getter, setter, doc):
    """A property of `Products` that is a bool of torch's."""

    def write(self, value):
        if not isinstance(value, bool):
            raise TypeError(
                f"torch.backends.musa.matmul.{name} must be a bool, but got {type(value).__name__}"
            )
        setter(value)

    return property(lambda self: getter(), write, doc=doc)


def _reduction(dtype):
    """The property for products of a 16-bit dtype; torch keeps two values, of which the first is this one."""
    name = f"allow_{dtype}_reduced_precision_reduction"
    get, put = getattr(torch._C, f"_get_cublas_{name}"), getattr(torch._C, f"_set_cublas_{name}")

    def first():
        value = get()
        return value[0] if isinstance(value, tuple) else value  # torch before 2.12 has one value

    return _setting(
        name,
        first,
        put,
        f"bool: whether products of {dtype} may add partial sums in {dtype}. torch's setting, True by "
        "default; a permission, of which no library of musa is known to have a switch.",
    )


class Products:
    """Settings of products of matrices, `torch.backends.musa.matmul`."""

    __slots__ = ()

    allow_tf32 = _setting(
        "allow_tf32",
        # torch's older function raises an error once a program has used the newer interface, fp32_precision.
        lambda: torch._C._get_fp32_precision_getter("cuda", "matmul") == "tf32",
        torch._C._set_cublas_allow_tf32,
        """bool: whether products of float32 may round their operands to TF32.

        This is torch's setting for its accelerators, which `torch.set_float32_matmul_precision` and
        `torch.backends.cuda.matmul.allow_tf32` write too. False by default. It concerns the products of packs
        whose libraries can round; such a pack may have a setting of its own in `torch.backends`.
        """,
    )
    allow_fp16_reduced_precision_reduction = _reduction("fp16")
    allow_bf16_reduced_precision_reduction = _reduction("bf16")
    allow_fp16_accumulation = _setting(
        "allow_fp16_accumulation",
        torch._C._get_cublas_allow_fp16_accumulation,
        torch._C._set_cublas_allow_fp16_accumulation,
        "bool: whether products of float16 may add in float16. torch's setting, False by default.",
    )

    @property
    def fp32_precision(self):
        """str: `"tf32"`, `"ieee"`, or `"none"`, which stands for `torch.backends.fp32_precision`."""
        return torch._C._get_fp32_precision_getter("cuda", "matmul")

    @fp32_precision.setter
    def fp32_precision(self, value):
        torch._C._set_fp32_precision_setter("cuda", "matmul", value)


def _one_library(name, kind, backend, current):
    default = type(current).Default
    if backend in (None, "default", default, current):
        return current
    raise RuntimeError(
        f"torch.backends.musa.{name}({backend!r}): the musa device has one library for {kind}, so there is "
        "none to prefer.\nFix: pass 'default', or leave the call out"
    )


class MusaBackend(types.ModuleType):
    """The module.

    Attributes:
        matmul (Products): settings of products of matrices.
    """

    def __init__(self, name):
        super().__init__(name, __doc__)
        self.matmul = Products()

    def __getattr__(self, name):
        # The switches of attention, imported with the first name that the module does not have.
        if not name.startswith("_"):
            from . import attention_switches

            for function in attention_switches.FUNCTIONS:
                if function.__name__ == name:
                    return function
        raise AttributeError(f"module 'torch.backends.musa' has no attribute {name!r}")

    def __dir__(self):
        from . import attention_switches

        switches = (function.__name__ for function in attention_switches.FUNCTIONS)
        return sorted({*super().__dir__(), *dir(type(self)), *switches})

    def is_built(self):
        """True: this torch has the device. Whether there is a GPU is `torch.musa.is_available()`."""
        return True

    def preferred_linalg_library(self, backend=None):
        """The preferred library for linear algebra, as `torch.backends.cuda.preferred_linalg_library`.

        Args:
            backend (str or torch._C._LinalgBackend, optional): `"default"`, the only choice.

        Raises:
            RuntimeError: another library.
        """
        current = torch._C._get_linalg_preferred_backend()
        return _one_library("preferred_linalg_library", "linear algebra", backend, current)

    def preferred_blas_library(self, backend=None):
        """The preferred library for products, as `torch.backends.cuda.preferred_blas_library`.

        Args:
            backend (str or torch._C._BlasBackend, optional): `"default"`, the only choice.

        Raises:
            RuntimeError: another library.
        """
        current = torch._C._get_blas_preferred_backend()
        return _one_library("preferred_blas_library", "products of matrices", backend, current)


def register():
    """Makes `torch.backends.musa` exist. A module that another package put there stays."""
    if not hasattr(torch.backends, "musa"):
        name = "torch.backends.musa"
        sys.modules[name] = torch.backends.musa = MusaBackend(name)
