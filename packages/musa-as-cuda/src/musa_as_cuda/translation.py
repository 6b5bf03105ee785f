# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Translates CUDA devices to MUSA devices and back. Indices are kept."""

import re

import torch

_CUDA = re.compile(r"cuda(:\d+)?")
_CUDA_TYPE = re.compile(r"torch\.cuda\.(\w+)")
_MUSA_TYPE = re.compile(r"torch\.musa\.(\w+)")
_device = torch.device  # saves an attribute lookup in each call of torch
_cuda_devices = {}  # by index; faster than constructing a device


def to_musa(value):
    """Returns the MUSA device for a CUDA device (`str` or `torch.device`), otherwise `value`."""
    kind = type(value)
    if kind is _device:
        return _device("musa", value.index) if value.type == "cuda" else value
    if kind is str and value.startswith("cuda") and _CUDA.fullmatch(value):
        return f"musa{value[4:]}"
    return value


def to_cuda(value):
    """Returns the CUDA `torch.device` for a MUSA device, otherwise `value`."""
    if type(value) is _device and value.type == "musa":
        index = value.index
        if index not in _cuda_devices:
            _cuda_devices[index] = _device("cuda", index)
        return _cuda_devices[index]
    return value


def nested(value):
    """Like :func:`to_musa`, but also translates members of lists, tuples and dicts."""
    if type(value) in (list, tuple):
        return type(value)(map(nested, value))
    if type(value) is dict:
        return {key: nested(member) for key, member in value.items()}
    return to_musa(value)


def tensor_type_to_musa(name):
    """Returns `"torch.musa.FloatTensor"` for `"torch.cuda.FloatTensor"`, otherwise `name`."""
    match = _CUDA_TYPE.fullmatch(name) if isinstance(name, str) else None
    return f"torch.musa.{match.group(1)}" if match else name


def tensor_type_to_cuda(name):
    """Returns `"torch.cuda.FloatTensor"` for `"torch.musa.FloatTensor"`, otherwise `name`."""
    match = _MUSA_TYPE.fullmatch(name) if isinstance(name, str) else None
    return f"torch.cuda.{match.group(1)}" if match else name
