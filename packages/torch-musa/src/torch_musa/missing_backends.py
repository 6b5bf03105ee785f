# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Stand-ins for backends of `torch.distributed`, whose errors name the missing pack.

The metadata of torch-musa lists the backends, each with the name of its pack.
"""

import functools
from importlib.metadata import EntryPoint
from typing import NoReturn

import torch.distributed

from . import entry_points, import_hooks


def register() -> None:
    """Registers a stand-in for each backend that neither its pack nor another package has registered."""
    if not torch.distributed.is_available():
        return
    backends = torch.distributed.Backend
    for entry in entry_points.select(entry_points.DISTRIBUTED_BACKENDS):
        if hasattr(backends, entry.name.upper()):
            continue
        backends.register_backend(entry.name, functools.partial(_explain, entry), devices=["musa"])
        available = f"is_{entry.name}_available"
        if not hasattr(torch.distributed, available):
            setattr(torch.distributed, available, lambda: False)


def _explain(entry: EntryPoint, store: object, rank: int, size: int, timeout: object) -> NoReturn:
    from . import pack_modules

    failures = [error for (_, pack), error in import_hooks.failures.items() if pack == entry.value]
    reason = pack_modules.why_missing(entry.name) or f"The pack {entry.value!r} could not be loaded."
    text = reason.replace(f"torch.musa.{entry.name}", f"The backend {entry.name!r} of torch.distributed", 1)
    raise RuntimeError(text) from (failures[0] if failures else None)
