# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Shapes, strides and dtypes of the results of operators on real and on fake tensors, for samples of torch's
operator database.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

# The most samples of an operator, evenly spaced: the first ones of many have no dimension or no element.
SAMPLES = 12
# Operators on tensors that are not strided, operators that resize an argument (so that a second call gets
# another one), and kernels that NVIDIA's compiler generates at run time.
_LEFT_OUT = ("sparse", "nested", "resize", "jiterator")
# Raised by an operator that does not take the layout, or whose result cannot be a fake tensor.
_REFUSALS = (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError)


class Layout(NamedTuple):
    """The properties of a tensor that a graph is compiled for. Strides of dimensions of size 1, and of empty
    tensors, are set to 0, because they do not matter.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: str


class Difference(NamedTuple):
    """A sample whose real result has another layout than the fake one."""

    arguments: str
    real: list[Layout]
    fake: list[Layout]


def layouts_of(results: Any) -> list[Layout]:
    found = []
    for result in pytree.tree_leaves(results):
        if isinstance(result, Tensor) and result.layout == torch.strided:
            strides = tuple(
                stride if size > 1 and result.numel() else 0
                for size, stride in zip(result.shape, result.stride())
            )
            found.append(Layout(tuple(result.shape), strides, result.dtype, result.device.type))
    return found


def _permuted(tensor: Tensor) -> Tensor:
    if tensor.dim() < 2:
        return tensor
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def _channels_last(tensor: Tensor) -> Tensor:
    return tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


ARGUMENTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda tensor: tensor,
    "permuted": _permuted,
    "channels_last": _channels_last,
}


@functools.cache
def operators() -> dict[str, Any]:
    """The operators that take float32, by name and variant."""
    return {
        op.formatted_name: op
        for op in op_db
        if torch.float32 in op.supported_dtypes("cpu") and not any(part in op.name for part in _LEFT_OUT)
    }


def _placed(value: Any, device: str, arrange: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        value = value.detach().to(device)
        return arrange(value) if value.layout == torch.strided else value
    if isinstance(value, torch.device):
        return torch.device(device)
    return device if isinstance(value, str) and value == "cpu" else value


def _real_and_fake(op: Any, sample: Any, device: str, arrange: Callable) -> tuple[list, list] | None:
    """The layouts of the results on a device, or None if the operator refuses the arguments."""
    call = (sample.input, sample.args, sample.kwargs)
    try:
        value, arguments, keywords = pytree.tree_map(lambda leaf: _placed(leaf, device, arrange), call)
        if "device" in keywords:
            keywords["device"] = device
        with FakeTensorMode() as mode:
            fake_value, fake_arguments, fake_keywords = pytree.tree_map(
                lambda leaf: mode.from_tensor(leaf) if isinstance(leaf, Tensor) else leaf,
                (value, arguments, keywords),
            )
            fake = layouts_of(op(fake_value, *fake_arguments, **fake_keywords))
        return layouts_of(op(value, *arguments, **keywords)), fake
    except _REFUSALS:
        return None


def samples(op: Any) -> Iterator[tuple[str, list, list]]:
    """The layout of the arguments, and both layouts of the results, for samples that musa and the CPU take.
    Leaves out those whose fake results are wrong on the CPU as well, which are errors of torch.
    """
    everything = list(op.sample_inputs("cpu", torch.float32, requires_grad=False))
    count = min(SAMPLES, len(everything))
    for number in range(count):
        sample = everything[(number + 1) * len(everything) // count - 1]
        for name, arrange in ARGUMENTS.items():
            on_musa = _real_and_fake(op, sample, "musa", arrange)
            on_cpu = _real_and_fake(op, sample, "cpu", arrange)
            if on_musa is not None and on_cpu is not None and on_cpu[0] == on_cpu[1]:
                yield name, *on_musa


def compare(op: Any) -> tuple[int, list[Difference]]:
    """The number of samples that were compared, and those that differ."""
    compared, found = 0, []
    for name, real, fake in samples(op):
        compared += 1
        if real != fake:
            found.append(Difference(name, real, fake))
    return compared, found
