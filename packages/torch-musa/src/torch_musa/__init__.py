# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Moore Threads GPUs as the PyTorch device "musa". `import torch` activates this package by itself.

With `TORCH_DEVICE_BACKEND_AUTOLOAD=0` in the environment it does not, and `import torch_musa` activates it.
"""


def _autoload():
    """What torch calls at the end of `import torch`. Never raises: an exception here would end `import
    torch`."""


# After `_autoload`: importing torch runs torch's autoload, which looks `_autoload` up in this
# half-initialised module.
import torch_musa._impl  # noqa: E402, F401
from torch_musa._version import __version__  # noqa: E402, F401
