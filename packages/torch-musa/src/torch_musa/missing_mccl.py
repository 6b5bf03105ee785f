# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A stand-in for the backend "mccl" of `torch.distributed`, whose error names the missing pack."""

import torch.distributed

from . import import_hooks


def register():
    """Registers the stand-in, unless the pack or another package has registered the backend."""
    if not torch.distributed.is_available() or hasattr(torch.distributed.Backend, "MCCL"):
        return
    torch.distributed.Backend.register_backend("mccl", _explain, devices=["musa"])
    if not hasattr(torch.distributed, "is_mccl_available"):
        torch.distributed.is_mccl_available = lambda: False


def _explain(store, rank, size, timeout):
    from . import pack_modules

    failures = [error for (_, pack), error in import_hooks.failures.items() if pack == "distributed"]
    reason = pack_modules.why_missing("mccl") or "musa-distributed could not be loaded."
    text = reason.replace("torch.musa.mccl", "The backend 'mccl' of torch.distributed", 1)
    raise RuntimeError(text) from (failures[0] if failures else None)
