# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.distributed` on musa: the backend "mccl". Nothing to import by hand: `init_process_group("mccl")`.

`ProcessGroupMCCL` is the class of its process groups, and `ProcessGroupMCCL.Options` what `pg_options` takes.
"""

import atexit
import sys


@atexit.register  # when torch is imported, so called after what the program registers
def _leave_python():
    """Wait for the library's threads that run Python: they must not outlive it."""
    if extension := sys.modules.get("musa_distributed._C"):
        extension.end_python_use()


def __getattr__(name):
    if name == "ProcessGroupMCCL":
        from . import _library

        return _library.load().ProcessGroupMCCL
    raise AttributeError(f"module 'musa_distributed' has no attribute {name!r}")


__all__ = ["ProcessGroupMCCL"]
