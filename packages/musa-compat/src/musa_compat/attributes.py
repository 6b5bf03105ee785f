# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Attributes of `torch_musa`: the names of `torch.musa`, and a vendor name that `torch.musa` lacks."""

import importlib

_MORE = {
    "use_unified_cpu_allocator": "unified_memory",
}


def attribute(name):
    """Returns the value of `torch_musa.<name>`.

    Raises:
        AttributeError: if neither `torch.musa` nor the vendor's package has the name.
    """
    if name in _MORE:
        return getattr(importlib.import_module(f"musa_compat.{_MORE[name]}"), name)
    import torch

    if name.startswith("_") and name not in ("_initialized", "_lazy_init", "_is_in_bad_fork", "_sleep"):
        raise AttributeError(f"module 'torch_musa' has no attribute {name!r}")
    return getattr(torch.musa, name)
