# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core`: the vendor's module folder, and the CMake path of `TorchMusa`."""

import importlib
from importlib import metadata

from .deprecation import warn_once

# Empty: with a folder here, Python would import each module a second time as
# torch_musa.core.<name>. The pack's entry points name the modules instead.
__path__ = []

warn_once("torch_musa.core", "torch.musa")

# For CMAKE_PREFIX_PATH: find_package(TorchMusa). Programs also use cmake_prefix_path + "/TorchMusa", and the
# folder two levels above, as that of lib.
cmake_prefix_path = str(metadata.distribution("musa-compat").locate_file("torch_musa/share/cmake"))

_MODULES = ("_lazy_init", "_utils", "amp", "device", "mccl", "memory", "mudnn", "random", "stream")


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"torch_musa.core.{name}")
    import torch

    if name.startswith("_"):
        raise AttributeError(f"module 'torch_musa.core' has no attribute {name!r}")
    return getattr(torch.musa, name)
