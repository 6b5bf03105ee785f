# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core.device`."""

from ..forwarding import forward, same

__getattr__, __dir__ = forward(
    "torch_musa.core.device",
    {
        **same(
            "can_device_access_peer",
            "current_device",
            "device",
            "device_count",
            "device_of",
            "get_arch_list",
            "get_device_capability",
            "get_device_name",
            "get_device_properties",
            "is_available",
            "is_bf16_supported",
            "is_tf32_supported",
            "set_device",
            "synchronize",
        ),
        "Device": "device",
    },
)
