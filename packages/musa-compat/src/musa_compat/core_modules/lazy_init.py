# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core._lazy_init`."""

import itertools

from musa_runtime.initialization import call_when_initialized

from ..forwarding import forward, same

__getattr__, __dir__ = forward(
    "torch_musa.core._lazy_init",
    same(
        "_initialized",
        "_is_in_bad_fork",
        "_lazy_init",
        "check_error",
        "current_device",
        "device",
        "is_initialized",
        "musart",
        "set_device",
        "synchronize",
        "MusaError",
    ),
)
_numbers = itertools.count()


def _lazy_call(callable, **kwargs):
    """Calls a function now if the device is initialized, otherwise when it is, as `torch.cuda._lazy_call`.

    Args:
        callable (function): called without arguments.
        kwargs: `seed` and `seed_all`, which torch passes for functions that seed; the order of calls is kept
            for all functions.
    """
    call_when_initialized(callable, ("torch_musa.core._lazy_init._lazy_call", next(_numbers)))
