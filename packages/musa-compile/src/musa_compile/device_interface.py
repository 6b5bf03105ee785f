# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The device interface of musa for Dynamo."""

import torch
from torch import musa
from torch._dynamo import device_interface as interfaces

from musa_runtime._load import extension

from . import _compat, triton_driver

# Upper bound of devices per process. Counting the devices would initialize them, and programs that
# fork may have imported Dynamo before, for example through torch.distributed.
_INDICES = 16

# Results are constant while a program runs, so compiled functions contain them as constants.
_CONSTANT = (
    musa.device_count,
    musa.is_available,
    musa.get_device_properties,
    musa.get_device_name,
    musa.get_device_capability,
    musa.is_bf16_supported,
)


class MusaInterface(interfaces.DeviceInterface):
    """Device interface for musa, for every device index."""

    device = musa.device
    Event = musa.Event
    Stream = musa.Stream

    class Worker:
        """Queries of kernel-compiling subprocesses, which must not use the device. The parent caches the
        results before it starts them.
        """

        @staticmethod
        def set_device(device):
            interfaces.caching_worker_current_devices["musa"] = device

        @staticmethod
        def current_device():
            known = interfaces.caching_worker_current_devices.get("musa")
            return musa.current_device() if known is None else known

        @staticmethod
        def get_device_properties(device=None):
            known = interfaces.caching_worker_device_properties
            if "musa" not in known:
                known["musa"] = [musa.get_device_properties(index) for index in range(musa.device_count())]
            if isinstance(device, (str, torch.device)):
                device = torch.device(device).index
            return known["musa"][MusaInterface.Worker.current_device() if device is None else device]

    current_device = staticmethod(musa.current_device)
    set_device = staticmethod(musa.set_device)
    device_count = staticmethod(musa.device_count)
    is_available = staticmethod(musa.is_available)
    stream = staticmethod(musa.stream)
    current_stream = staticmethod(musa.current_stream)
    set_stream = staticmethod(musa.set_stream)
    _set_stream_by_id = staticmethod(musa._set_stream_by_id)
    synchronize = staticmethod(musa.synchronize)
    get_device_properties = staticmethod(musa.get_device_properties)
    memory_allocated = staticmethod(musa.memory_allocated)

    @staticmethod
    def exchange_device(device):
        return extension().exchange_device(device)

    @staticmethod
    def maybe_exchange_device(device):
        return extension().maybe_exchange_device(device)

    @staticmethod
    def get_raw_stream(device_idx):
        stream_id, index, _ = extension().current_stream(device_idx)
        return extension().stream_native_handle(stream_id, index)

    @staticmethod
    def get_compute_capability(device=None):
        major, minor = musa.get_device_capability(device)
        return major * 10 + minor

    @staticmethod
    def is_bf16_supported(including_emulation=False):
        return musa.is_bf16_supported(including_emulation)

    @staticmethod
    def is_triton_capable(device=None):
        return triton_driver.find().name is not None


def register():
    """Registers with Dynamo, once."""
    interfaces.register_interface_for_device("musa", MusaInterface)
    for index in range(_INDICES):
        interfaces.register_interface_for_device(f"musa:{index}", MusaInterface)
    if _compat.has_device_contexts():
        from . import device_context

        device_context.register()
    for function in _CONSTANT:
        torch.compiler.assume_constant_result(function)
    _compat.register_graphsafe_rng()
