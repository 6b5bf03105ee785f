# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Registers the backend "mccl" with `torch.distributed`.

The module holds the import hook of the pack, so only its functions import torch.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ._C import ProcessGroupMCCL


def register() -> None:
    """Registers "mccl" as the backend for musa, unless it is registered already."""
    import torch.distributed

    if not torch.distributed.is_available():
        return  # this torch was built without distributed
    backends = torch.distributed.Backend
    if not hasattr(backends, "MCCL"):
        backends.register_backend("mccl", _create, extended_api=True, devices=["musa"])
    # This module registers "fake" with a list of devices when it is imported, which would replace the entry.
    import torch.testing._internal.distributed.fake_pg

    # torch looks up the device of a bound group in each new group, even if that is for CPU tensors, and a
    # group that only simulates others serves any device. `register_backend` cannot add a device to a
    # backend of torch, because it would also change its type.
    for name in (backends.GLOO, backends.FAKE):
        devices = backends.backend_capability.get(name, [])
        if "musa" not in devices:
            devices.append("musa")


def _create(group: Any, options: ProcessGroupMCCL.Options | None) -> ProcessGroupMCCL:
    """Creates a process group; called by `init_process_group` and `new_group`.

    Args:
        group (torch.distributed.distributed_c10d._DistributedBackendOptions): store, rank, size and timeout.
        options (ProcessGroupMCCL.Options, optional): the caller's `pg_options`.
    """
    from . import _extension

    wanted = _extension.load().ProcessGroupMCCL.Options
    if options is None:
        options = wanted()
    elif not isinstance(options, wanted):
        raise TypeError(
            f"pg_options of backend 'mccl' must be musa_distributed.ProcessGroupMCCL.Options, not "
            f"{type(options).__name__}"
        )
    options._timeout = group.timeout
    options.group_name = group.group_id
    options.global_ranks_in_group = group.global_ranks_in_group
    return _extension.load().ProcessGroupMCCL(group.store, group.group_rank, group.group_size, options)


def is_mccl_available() -> bool:
    """Whether the SDK in use has MCCL, which a process group of "mccl" needs. Loads no library."""
    import musa_runtime

    from . import _extension

    if musa_runtime.load().error is not None:
        return False
    try:
        return os.path.exists(_extension.mccl_path())
    except RuntimeError:
        return False


def musa_import(musa: ModuleType) -> None:
    """The import hook of the pack: registers the backend."""
    register()
    import torch.distributed

    if not torch.distributed.is_available():
        return
    if not hasattr(torch.distributed, "is_mccl_available"):
        torch.distributed.is_mccl_available = is_mccl_available  # type: ignore[attr-defined]
    # Looked up on demand, because the class is in the pack's library, which no import loads.
    if not hasattr(torch.distributed, "__getattr__"):
        torch.distributed.__getattr__ = _attribute_of_distributed  # type: ignore[method-assign]


def _attribute_of_distributed(name: str) -> Any:
    """Returns `torch.distributed.ProcessGroupMCCL`, as `torch.distributed.ProcessGroupNCCL`."""
    if name == "ProcessGroupMCCL":
        from . import _extension

        try:
            return _extension.load().ProcessGroupMCCL
        except RuntimeError as error:  # hasattr() must return False
            raise AttributeError(f"torch.distributed.ProcessGroupMCCL cannot be used: {error}") from error
    raise AttributeError(f"module 'torch.distributed' has no attribute {name!r}")
