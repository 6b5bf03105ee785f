# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core._lazy_init`."""

from ..forwarding import forward, same

__getattr__, __dir__ = forward(
    "torch_musa.core._lazy_init",
    same(
        "_initialized",
        "_is_in_bad_fork",
        "_lazy_call",
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
