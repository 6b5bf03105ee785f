# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Saves operator calls to files that `torch.load(..., weights_only=True)` reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from musa_runtime.errors import MusaError

from .call import DEVICE, describe

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence

    from .call import OperatorCall
    from .host_arguments import HostArguments

FORMAT = 1
_NAMED = {torch.dtype: "dtype", torch.layout: "layout", torch.memory_format: "memory_format"}
_FIELDS = {
    "operator": str, "args": list, "kwargs": dict, "tensors": list, "on_device": list, "written": list,
    "expected": dict, "module": str, "phase": str, "call": int, "provider": str, "note": str, "torch": str,
}  # fmt: skip
_PLAIN = (bool, int, float, complex, str)
_OPERATOR = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(\.\w+)?", re.ASCII)
_DEVICE = re.compile(rf"(cpu|meta|{DEVICE})(:\d{{1,2}})?", re.ASCII)
_DEEPEST = 4  # nested lists; schemas have at most two
# Parameters of aten's operators that are words of a fixed set or messages. Any other text may name a file.
_TEXTS = frozenset(
    ("reduce", "activation", "algorithm", "padding_side", "norm", "assert_msg", "approximate", "ord",
     "rounding_mode", "interpolation", "driver", "mode", "p", "pad_mode", "UPLO", "side", "padding",
     "equation", "indexing", "api_name")
)  # fmt: skip
_FIX = "Fix: name a file that torch_musa.debug wrote, such as call.pt; {path} is not one"


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
        CallFileError: if the file cannot be read, or its content is not as `save` writes it.
    """
    try:
        content = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:
        raise CallFileError(f"{path} cannot be loaded: {error}\n{_FIX.format(path=path)}") from error
    version = content.get("format") if isinstance(content, dict) else None
    if type(version) is not int or version != FORMAT:
        raise CallFileError(
            f"{path} does not contain an operator call in format {FORMAT}.\n{_FIX.format(path=path)}"
        )
    if problem := _problem(content):
        raise CallFileError(f"{path} is malformed: {problem}.\n{_FIX.format(path=path)}")
    return content


def operator(content: dict[str, Any], namespaces: Collection[str] = ()) -> torch._ops.OpOverload:
    """Returns the operator of a file.

    A file may come from someone else, so it does not choose freely: the operator is one of aten, or of a
    namespace that the caller names, and it computes with tensors. `aten::from_file`, for example, creates
    files, and `aten::save` of TorchScript overwrites them.

    Args:
        namespaces (collection of str): namespaces that are accepted besides aten.

    Raises:
        CallFileError: if this process does not have the operator, it is not accepted, or it has other
            parameters than those in the file.
    """
    full = content["operator"]
    namespace, _, name = full.partition("::")
    name, _, overload = name.partition(".")
    if namespace != "aten" and namespace not in namespaces:
        raise CallFileError(
            f"the file runs {full}, and only operators of aten run by default.\n"
            "Likely cause: the call is of another package's operator, which may do anything, also to files.\n"
            f"Fix: if you trust the file and the package, python -m torch_musa replay --import PACKAGE "
            f"--namespace {namespace} FILE"
        )
    try:
        func = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
    except (AttributeError, RuntimeError) as error:
        raise CallFileError(
            f"there is no operator {full} in this process.\n"
            "Likely cause: the package that defines it is not imported.\n"
            "Fix: python -m torch_musa replay --import PACKAGE FILE"
        ) from error
    if not isinstance(func, torch._ops.OpOverload):
        raise CallFileError(f"{full} in the file is no operator.\nFix: use a file of torch_musa.debug")
    if namespace == "aten" and (problem := _refusal(func)):
        raise CallFileError(
            f"{full} is not replayed: {problem}.\n"
            "Likely cause: torch_musa.debug did not write this file.\n"
            "Fix: do not use the file"
        )
    if problem := _mismatch(func, content):
        raise CallFileError(
            f"the file does not match {full}: {problem}.\n"
            "Likely causes: the file was written with another version of the package, or was edited.\n"
            "Fix: save the call again with torch_musa.debug.dump"
        )
    return func


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


def _problem(content: dict[str, Any]) -> str:
    """Returns the first difference from the format, "" without one."""
    for key, kind in _FIELDS.items():
        if not isinstance(content.get(key), kind):
            return f"{key!r} is missing or no {kind.__name__}"
    if not _OPERATOR.fullmatch(content["operator"]):
        return f"{content['operator'][:80]!r} is no name of an operator"
    tensors, on_device = content["tensors"], content["on_device"]
    if not all(isinstance(value, torch.Tensor) for value in (*tensors, *content["expected"].values())):
        return "'tensors' or 'expected' has a value that is no tensor"
    if len(on_device) != len(tensors) or not all(isinstance(value, bool) for value in on_device):
        return "'on_device' does not have one bool for each tensor"
    if not all(
        isinstance(name, str) for name in (*content["kwargs"], *content["expected"], *content["written"])
    ):
        return "a name is no str"
    values = [*content["args"], *content["kwargs"].values()]
    problem = next(filter(None, (_problem_of_value(value, len(tensors)) for value in values)), "")
    if not problem and not any(on_device) and not any(value == {"device": DEVICE} for value in values):
        return "no argument is on the device"
    return problem


def _problem_of_value(value: Any, tensors: int, depth: int = 0) -> str:
    if isinstance(value, list):
        if depth == _DEEPEST:
            return f"lists are nested more than {_DEEPEST} deep"
        return next(filter(None, (_problem_of_value(item, tensors, depth + 1) for item in value)), "")
    if not isinstance(value, dict):
        return (
            "" if value is None or isinstance(value, _PLAIN) else f"an argument is a {type(value).__name__}"
        )
    if len(value) != 1:
        return "an argument is a dict that does not have one key"
    ((kind, what),) = value.items()
    if kind == "tensor":
        valid = type(what) is int and 0 <= what < tensors
    elif kind == "device":
        valid = isinstance(what, str) and _DEVICE.fullmatch(what) is not None
    elif kind == "generator":
        valid = what is None
    else:
        kinds = [each for each, key in _NAMED.items() if key == kind]
        valid = bool(kinds) and isinstance(what, str) and isinstance(getattr(torch, what, None), kinds[0])
    return "" if valid else f"an argument is {describe(value)}"


def _refusal(func: torch._ops.OpOverload) -> str:
    """Returns the reason why an operator of aten is not replayed, "" without one."""
    schema = func._schema
    if not any("Tensor" in str(part.type) for part in (*schema.arguments, *schema.returns)):
        return "it has no tensors"
    for argument in schema.arguments:
        if "str" in str(argument.type) and argument.name not in _TEXTS:
            return f"its parameter {argument.name!r} is a text that may name a file"
    return ""


def _mismatch(func: torch._ops.OpOverload, content: dict[str, Any]) -> str:
    """Returns the first difference between a call and the operator's parameters, "" without one."""
    parameters = func._schema.arguments
    positional = [parameter.name for parameter in parameters if not parameter.kwarg_only]
    given = len(content["args"])
    if given > len(positional):
        return f"it has {given} positional arguments, and the operator takes {len(positional)}"
    names = [*positional[:given], *content["kwargs"]]
    known = {parameter.name for parameter in parameters}
    for name in names:
        if name not in known or names.count(name) > 1:
            return f"its argument {name!r} is unknown or given twice"
    for parameter in parameters:
        if parameter.name not in names and not parameter.has_default_value():
            return f"the argument {parameter.name!r} is missing"
    return ""


def place(
    tensors: Sequence[torch.Tensor], on_device: Sequence[bool], device: str | torch.device
) -> list[torch.Tensor]:
    """Copies CPU tensors to a device. Tensors that share memory are copied to one storage."""
    storages, placed = {}, []
    for tensor, moves in zip(tensors, on_device):
        target = torch.device(device if moves else "cpu")
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            placed.append(tensor.to(target, copy=True))
            continue
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
