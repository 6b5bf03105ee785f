# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The mode that translates devices in calls of torch's functions and tensor methods and properties.

torch calls a `TorchFunctionMode` for every function of `torch`, every method of `Tensor` and every property
such as `Tensor.device`, on the thread that entered the mode. The mode is disabled while such a function runs,
so torch's own functions see MUSA devices.
"""

import torch
from torch.overrides import TorchFunctionMode

from . import translation

_keywords = {}  # always empty
_device = torch.device


class AsCuda(TorchFunctionMode):
    """Translates CUDA devices in arguments to MUSA devices, and MUSA devices in results to CUDA."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        # Runs for every operator and every property, so the loops are unrolled for speed.
        special = _SPECIAL.get(func)
        if special is not None:
            return special(func, args, kwargs or _keywords)
        for value in args:
            kind = type(value)
            if kind is str or kind is _device:
                args = tuple(map(translation.to_musa, args))
                break
        if not kwargs:
            result = func(*args)
        else:
            for value in kwargs.values():
                kind = type(value)
                if kind is str or kind is _device:
                    kwargs = {name: translation.to_musa(each) for name, each in kwargs.items()}
                    break
            result = func(*args, **kwargs)
        return translation.to_cuda(result) if type(result) is _device else result


def is_active():
    """Whether the mode is on for this thread and not suspended by a running function of torch."""
    return any(isinstance(mode, AsCuda) for mode in torch.overrides._get_current_function_mode_stack())


def _unchanged(func, args, kwargs):
    return func(*args, **kwargs)


def _is_cuda(func, args, kwargs):
    return func(*args, **kwargs) or args[0].is_musa


def _cuda(func, args, kwargs):
    def place(tensor, device=None, non_blocking=False, memory_format=torch.preserve_format):
        # Without a device the method uses the current device, even for a tensor on another device.
        index = device if isinstance(device, int) else None
        if device is None:
            index = torch.musa.current_device()
        target = translation.to_musa(device) if index is None else torch.device("musa", index)
        return tensor.to(target, non_blocking=non_blocking, memory_format=memory_format)

    return place(*args, **kwargs)


def _type(func, args, kwargs):
    args = tuple(map(translation.tensor_type_to_musa, args))
    kwargs = {name: translation.tensor_type_to_musa(value) for name, value in kwargs.items()}
    return translation.tensor_type_to_cuda(func(*args, **kwargs))


def _repr(func, args, kwargs):
    return func(*args, **kwargs).replace("device='musa:", "device='cuda:")


def _device_of(func, args, kwargs):
    return translation.to_cuda(func(*args))


_SPECIAL = {
    torch.Tensor.device.__get__: _device_of,
    torch.device: _unchanged,  # torch.device("cuda") keeps its value
    torch.Tensor.is_cuda.__get__: _is_cuda,
    torch.Tensor.cuda: _cuda,
    torch.Tensor.type: _type,
    torch.Tensor.__repr__: _repr,
}
