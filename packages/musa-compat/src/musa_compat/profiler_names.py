# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Attributes of torch.profiler's events with the device's name: `event.self_musa_time_total`.

torch has them for CUDA, and `table(sort_by="self_cuda_time_total")` reads the attribute of the device. For a
renamed device, `sort_by` is an attribute that the events lack: docs/upstream/profiler_names.md.
"""

_NAMES = (
    *("device_time", "device_time_total", "self_device_time_total"),
    *("device_time_str", "device_time_total_str", "self_device_time_total_str"),
    *("device_memory_usage", "self_device_memory_usage"),
)


def add():
    """Adds a property for each name to the base class of torch's events, unless the class has it."""
    from torch.autograd.profiler_util import FormattedTimesMixin

    for name in _NAMES:
        musa = name.replace("device", "musa")
        if not hasattr(FormattedTimesMixin, musa):
            setattr(FormattedTimesMixin, musa, _forwarding(name))


def _forwarding(name):
    return property(lambda event: getattr(event, name), doc=f"`{name}`, by the name of the device.")
