# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.musa`: precision of products, with the names of `torch.backends.cuda`."""

import sys
import types

import torch.backends


class Products:
    """Settings of products of matrices, `torch.backends.musa.matmul`."""

    __slots__ = ()

    @property
    def allow_tf32(self):
        """bool: whether products of float32 may round their operands to TF32.

        This is torch's setting for its accelerators, which `torch.set_float32_matmul_precision` and
        `torch.backends.cuda.matmul.allow_tf32` write too. False by default. It concerns the products of packs
        whose libraries can round; such a pack may have a setting of its own in `torch.backends`.
        """
        return torch._C._get_cublas_allow_tf32()

    @allow_tf32.setter
    def allow_tf32(self, value):
        if not isinstance(value, bool):
            raise TypeError(
                f"torch.backends.musa.matmul.allow_tf32 must be a bool, but got {type(value).__name__}"
            )
        torch._C._set_cublas_allow_tf32(value)


class MusaBackend(types.ModuleType):
    """The module.

    Attributes:
        matmul (Products): settings of products of matrices.
    """

    def __init__(self, name):
        super().__init__(name, __doc__)
        self.matmul = Products()

    def is_built(self):
        """True: this torch has the device. Whether there is a GPU is `torch.musa.is_available()`."""
        return True


def register():
    """Makes `torch.backends.musa` exist. A module that another package put there stays."""
    if not hasattr(torch.backends, "musa"):
        name = "torch.backends.musa"
        sys.modules[name] = torch.backends.musa = MusaBackend(name)
