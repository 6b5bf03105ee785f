# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.distributed` on musa: the backend "mccl". No import is needed: `init_process_group("mccl")`.

`ProcessGroupMCCL` is the class of its process groups, `ProcessGroupMCCL.Options` the type of `pg_options`.
"""

from __future__ import annotations

import atexit
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._C import ProcessGroupMCCL


@atexit.register  # registered at `import torch`, so it runs after the program's own handlers
def _leave_python() -> None:
    """Waits for the library's threads that run Python code, which must not outlive the interpreter."""
    if extension := sys.modules.get("musa_distributed._C"):
        extension.end_python_use()


def __getattr__(name: str) -> Any:
    if name == "ProcessGroupMCCL":
        from . import _extension

        return _extension.load().ProcessGroupMCCL
    raise AttributeError(f"module 'musa_distributed' has no attribute {name!r}")


__all__ = ["ProcessGroupMCCL"]
