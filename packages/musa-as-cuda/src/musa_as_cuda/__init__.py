# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs programs that use the device "cuda" unchanged on musa. Off by default.

    with musa_as_cuda.enabled():
        x = torch.ones(3, device="cuda")  # on musa:0; x.device is cuda:0 and x.is_cuda is True

`TORCH_MUSA_AS_CUDA=1` and `import torch_musa.as_cuda` switch it on for the whole process,
`python -m torch_musa run --as-cuda script.py` for a program and its child processes. Importing this package
changes nothing.
"""


def __getattr__(name):
    # Imported on first access, because the import hook of this package must not import torch.
    if name in __all__:
        from . import switch

        return getattr(switch, name)
    raise AttributeError(f"module 'musa_as_cuda' has no attribute {name!r}")


__all__ = ["AsCudaError", "disable", "enable", "enabled", "is_enabled"]
