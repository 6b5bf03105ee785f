# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Saves operator calls to files that `torch.load(..., weights_only=True)` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from musa_runtime.errors import MusaError

from .call import DEVICE

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from .call import OperatorCall
    from .host_arguments import HostArguments

FORMAT = 1
_NAMED = {torch.dtype: "dtype", torch.layout: "layout", torch.memory_format: "memory_format"}


class CallFileError(MusaError):
    """A call cannot be saved, or a file does not contain a call."""


def save(
    path: str | os.PathLike[str],
    call: OperatorCall,
    arguments: HostArguments,
    expected: dict[str, torch.Tensor] | None = None,
    note: str = "",
) -> None:
    """Writes a call.

    Args:
        path (path): the output file.
        call (OperatorCall): the call.
        arguments (HostArguments): copies of its arguments, made before it ran.
        expected (dict of str to Tensor): outputs on the CPU, for readers that do not compute a reference.
        note (str): why it was saved.

    Raises:
        CallFileError: if an argument is neither a tensor nor a plain value, for example a process group.
    """
    tensors: list[torch.Tensor] = []
    on_device: list[bool] = []
    places: dict[int, int] = {}

    def encode(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in places:
                places[id(value)] = len(tensors)
                tensors.append(arguments.on_host(value).detach())
                on_device.append(value.device.type == DEVICE)
            return {"tensor": places[id(value)]}
        if isinstance(value, (list, tuple)):
            return [encode(item) for item in value]
        if isinstance(value, torch.device):
            return {"device": DEVICE if value.type == DEVICE else str(value)}
        if isinstance(value, torch.Generator):
            return {"generator": None}
        for kind, key in _NAMED.items():
            if isinstance(value, kind):
                return {key: str(value).removeprefix("torch.")}
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return value
        raise CallFileError(
            f"the call {call.where()} cannot be saved: an argument is a {type(value).__name__}.\n"
            "Likely cause: it is an operator on process groups or streams, which exist in one process only.\n"
            "Fix: exclude it with the argument `operators`"
        )

    content = {
        "format": FORMAT,
        "operator": call.name,
        "args": [encode(value) for value in call.args],
        "kwargs": {name: encode(value) for name, value in call.kwargs.items()},
        "tensors": tensors,
        "on_device": on_device,
        "written": [name for name, _ in call.written],
        "expected": expected or {},
        "module": call.module,
        "phase": call.phase,
        "call": call.index,
        "provider": call.provider,
        "note": note,
        "torch": str(torch.__version__),
    }
    torch.save(content, path)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the content of a file as a dict, see `save`.

    Raises:
        CallFileError: if the file cannot be read, or was not written by `save`.
    """
    fix = f"Fix: name a file that torch_musa.debug wrote, such as call.pt; {path} is not one"
    try:
        content = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:
        raise CallFileError(f"{path} cannot be loaded: {error}\n{fix}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CallFileError(f"{path} does not contain an operator call in format {FORMAT}.\n{fix}")
    return content


def operator(content: dict[str, Any]) -> torch._ops.OpOverload:
    """Returns the operator of a file.

    Raises:
        CallFileError: if this process does not have the operator.
    """
    namespace, _, name = content["operator"].partition("::")
    name, _, overload = name.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
    except AttributeError as error:
        raise CallFileError(
            f"there is no operator {content['operator']} in this process.\n"
            "Likely cause: the package that defines it is not imported.\n"
            "Fix: python -m torch_musa replay --import PACKAGE FILE"
        ) from error


def arguments(content: dict[str, Any], device: str | torch.device) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments of a file's call, with tensors on a device.

    Args:
        device (str or torch.device): device for the tensors that were on the musa device.

    Returns:
        tuple of (list, dict): positional and keyword arguments. Strides are those of the original, and
            tensors that shared memory still share memory.
    """
    tensors = place(content["tensors"], content["on_device"], device)

    def decode(value: Any) -> Any:
        if isinstance(value, list):
            return [decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((kind, what),) = value.items()
        if kind == "tensor":
            return tensors[what]
        if kind == "device":
            return torch.device(device) if what == DEVICE else torch.device(what)
        return None if kind == "generator" else getattr(torch, what)

    args = [decode(value) for value in content["args"]]
    return args, {name: decode(value) for name, value in content["kwargs"].items()}


def place(
    tensors: Sequence[torch.Tensor], on_device: Sequence[bool], device: str | torch.device
) -> list[torch.Tensor]:
    """Copies CPU tensors to a device. Tensors that share memory are copied to one storage."""
    storages, placed = {}, []
    for tensor, moves in zip(tensors, on_device):
        target = torch.device(device if moves else "cpu")
        storage = tensor.untyped_storage()
        key = storage._cdata, target
        if key not in storages:
            data = torch.empty(0, dtype=torch.uint8).set_(storage)
            storages[key] = data.to(target, copy=True).untyped_storage()
        copy = torch.empty(0, dtype=tensor.dtype, device=target)
        copy.set_(storages[key], tensor.storage_offset(), tensor.size(), tensor.stride())
        if tensor.is_conj():
            copy = copy.conj()
        placed.append(torch._neg_view(copy) if tensor.is_neg() else copy)
    return placed
