# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core.stream`."""

from ..forwarding import forward, same

__getattr__, __dir__ = forward(
    "torch_musa.core.stream",
    same(
        "Event",
        "ExternalStream",
        "Stream",
        "StreamContext",
        "current_stream",
        "default_stream",
        "set_stream",
        "stream",
    ),
)
