# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Moore Threads GPUs as the PyTorch device "musa". `import torch` activates this package.

With `TORCH_DEVICE_BACKEND_AUTOLOAD=0` in the environment, `import torch_musa` activates it instead.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from musa_runtime.device import current_device as current_device
    from musa_runtime.device import get_device_capability as get_device_capability
    from musa_runtime.device import set_device as set_device
    from musa_runtime.streams import current_stream as current_stream
    from torch_musa import _MUSAC as _MUSAC
    from torch_musa import debug as debug


def _autoload() -> None:
    """Called by torch at the end of `import torch`. Never raises, because an exception would end `import
    torch`."""


# The vendor's Triton driver reads these from this package; `torch.musa` defines them.
_OF_TORCH_MUSA = ("current_device", "current_stream", "get_device_capability", "set_device")


def __getattr__(name: str) -> Any:
    # Imported on demand, because this package must import even in processes where torch.musa
    # cannot.
    if name in ("_MUSAC", "debug"):
        import importlib

        return importlib.import_module(f"torch_musa.{name}")
    if name in _OF_TORCH_MUSA:
        import torch

        return getattr(torch.musa, name)  # type: ignore[attr-defined]
    # `from torch_musa import module` looks up an attribute before it imports the module. Python
    # itself looks up dunder names in every module.
    if name.startswith("__") or _has_file(name):
        raise AttributeError(f"module 'torch_musa' has no attribute {name!r}")
    import importlib

    return importlib.import_module("torch_musa.package_names").attribute(name)


def __dir__() -> list[str]:
    import importlib

    return sorted({*globals(), *importlib.import_module("torch_musa.package_names").names()})


_files: dict[str, bool] = {}  # name -> whether this package has a file or folder of that name


def _has_file(name: str) -> bool:
    import os

    if name not in _files:
        paths = (os.path.join(folder, *name.split(".")) for folder in __path__)
        _files[name] = any(os.path.isdir(path) or os.path.isfile(f"{path}.py") for path in paths)
    return _files[name]


# Must follow `_autoload`: importing torch runs its autoload, which looks up `_autoload` in this
# partially initialized module.
import torch_musa._impl  # noqa: E402, F401
from torch_musa._version import __version__ as __version__  # noqa: E402
