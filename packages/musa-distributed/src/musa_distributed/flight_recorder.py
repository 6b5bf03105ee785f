# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The flight record: the last calls of this process's groups of backend "mccl".

A group that fails writes it to `$TORCH_FR_DUMP_TEMP_FILE<rank>`, where
`python -m torch.distributed.flight_recorder.fr_trace` reads it.
"""

from __future__ import annotations

from . import _extension


def dump(
    include_collectives: bool = True, include_stack_traces: bool = True, only_active: bool = False
) -> bytes:
    """Returns the flight record in torch's format.

    Args:
        include_collectives (bool): include the calls, not only the groups.
        include_stack_traces (bool): include the stack trace of each call.
        only_active (bool): include only calls that have not finished.

    Returns:
        bytes: a pickle of a dict; `entries` lists the calls, oldest first.
    """
    return _extension.load().dump_flight_record(include_collectives, include_stack_traces, only_active)


def reset() -> None:
    """Removes all calls from the record."""
    _extension.load().reset_flight_record()


__all__ = ["dump", "reset"]
