# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.mccl`: information about MCCL."""

from __future__ import annotations

from typing import NoReturn

from . import _extension


def version() -> tuple[int, int, int]:
    """Returns the version of MCCL.

    Returns:
        tuple of int: major, minor, patch.

    Raises:
        RuntimeError: MCCL is not installed.
    """
    return _extension.load().version()


def __getattr__(name: str) -> NoReturn:
    function = _OF_TORCH_DISTRIBUTED.get(name)
    if function is not None:
        raise AttributeError(
            f"module 'torch.musa.mccl' has no attribute {name!r}: collectives over the devices of one "
            f"process are an interface of torch.cuda.nccl only.\nFix: use {function}"
        )
    raise AttributeError(f"module 'torch.musa.mccl' has no attribute {name!r}")


# Functions of torch.cuda.nccl, and what does the same for a process per device, or copies between devices.
_OF_TORCH_DISTRIBUTED = {
    "SUM": "torch.distributed.ReduceOp.SUM",
    "all_gather": "torch.distributed.all_gather_into_tensor",
    "all_reduce": "torch.distributed.all_reduce, or torch.musa.comm.reduce_add in one process",
    "broadcast": "torch.distributed.broadcast, or torch.musa.comm.broadcast in one process",
    "init_rank": "torch.distributed.init_process_group('mccl')",
    "is_available": "torch.distributed.is_mccl_available()",
    "reduce": "torch.distributed.reduce, or torch.musa.comm.reduce_add in one process",
    "reduce_scatter": "torch.distributed.reduce_scatter_tensor",
    "unique_id": "torch.distributed.init_process_group('mccl'), which exchanges the id",
}

__all__ = ["version"]
