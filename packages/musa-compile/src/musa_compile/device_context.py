# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`with torch.musa.device(i)` in compiled functions."""

import torch
from torch import musa
from torch._dynamo.variables import ctx_manager

from musa_runtime.device import _get_device_index


class DeviceVariable(ctx_manager.GenericDeviceVariable):
    """The context manager `torch.musa.device` while Dynamo traces a function."""

    _exchange_fn = staticmethod(torch._C._accelerator_exchangeDevice)
    _maybe_exchange_fn = staticmethod(torch._C._accelerator_maybeExchangeDevice)
    _get_device_index_fn = staticmethod(_get_device_index)

    def module_name(self):
        return "torch.musa"

    def python_type(self):
        return musa.device


def register():
    """Register with Dynamo, once."""
    ctx_manager.register_device_context_manager(musa.device, DeviceVariable)
