# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Moore Threads GPUs as the PyTorch device "musa". `import torch` activates this package by itself.

With `TORCH_DEVICE_BACKEND_AUTOLOAD=0` in the environment it does not, and `import torch_musa` activates it.
"""


def _autoload():
    """What torch calls at the end of `import torch`. Never raises: an exception here would end `import
    torch`."""


# The driver of the vendor's Triton reads these from this package; `torch.musa` defines them.
_OF_TORCH_MUSA = ("current_device", "current_stream", "get_device_capability", "set_device")


def __getattr__(name):
    # Not imported with the package, which has to import in processes where torch.musa cannot.
    if name == "_MUSAC":
        import importlib

        return importlib.import_module("torch_musa._MUSAC")
    if name in _OF_TORCH_MUSA:
        import torch

        return getattr(torch.musa, name)
    raise AttributeError(f"module 'torch_musa' has no attribute {name!r}")


# After `_autoload`: importing torch runs torch's autoload, which looks `_autoload` up in this
# half-initialised module.
import torch_musa._impl  # noqa: E402, F401
from torch_musa._version import __version__  # noqa: E402, F401
