# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The last calls of this process's groups of backend "mccl".

A group that fails writes them to `$TORCH_FR_DUMP_TEMP_FILE<rank>`, where
`python -m torch.distributed.flight_recorder.fr_trace` reads them.
"""

from . import _library


def dump(include_collectives=True, include_stack_traces=True, only_active=False):
    """The record as torch writes it.

    Args:
        include_collectives (bool): the calls, and not the groups alone.
        include_stack_traces (bool): where in the program each was made.
        only_active (bool): those that have not finished.

    Returns:
        bytes: a pickle of a dict; `entries` are the calls, oldest first.
    """
    return _library.load().dump_flight_record(include_collectives, include_stack_traces, only_active)


def reset():
    """Forget the calls."""
    _library.load().reset_flight_record()


__all__ = ["dump", "reset"]
