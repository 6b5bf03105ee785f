# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operands of an operator, of a size and a dtype: from the table of recipes, the rest from the schema."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from . import recipes
from .maker import Maker
from .operators import overload

if TYPE_CHECKING:
    from collections.abc import Sequence

# Dtypes that are tried in order until torch's CPU kernel accepts the operands.
_BASES = (torch.float32, torch.int64, torch.complex64)
_SMALLEST = 1_000


class NoInputs(Exception):
    """Operands cannot be made; the text is the reason."""


@dataclass(frozen=True)
class Case:
    """A size and a dtype.

    Attributes:
        size (str): `"small"`, `"medium"` or `"large"`.
        numel (int): number of elements of the operator's largest operand, approximately.
        dtype (torch.dtype): dtype of the operands that are neither indices nor masks.
    """

    size: str
    numel: int
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.size} {str(self.dtype).removeprefix('torch.')}"


@dataclass(frozen=True)
class Call:
    """An operator with operands on a device."""

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self) -> Any:
        return overload(self.op)(*self.args, **self.kwargs)

    def map(self, change: Any) -> Call:
        """Returns the call with `change` applied to its tensors and dtypes."""

        def mapped(value: Any) -> Any:
            if isinstance(value, (torch.Tensor, torch.dtype)):
                return change(value)
            if isinstance(value, (list, tuple)):
                return type(value)(map(mapped, value))
            return value

        kwargs = {name: mapped(value) for name, value in self.kwargs.items()}
        return Call(self.op, tuple(map(mapped, self.args)), kwargs)

    def written(self) -> list[Any]:
        """Returns the operands that the operator writes."""
        arguments = overload(self.op)._schema.arguments
        names = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
        positional = dict(zip((a.name for a in arguments), self.args))
        values = {**positional, **self.kwargs}
        return [values[name] for name in names if name in values]


def base_dtype(op: str) -> torch.dtype:
    """Returns the first dtype whose operands torch's CPU kernel accepts.

    Raises:
        NoInputs: none, or results of the operator are random.
    """
    func = overload(op)
    # Attention draws numbers only if its probability of dropout is not 0, the default.
    random = torch.Tag.nondeterministic_seeded in func.tags and not any(
        argument.name == "dropout_p" for argument in func._schema.arguments
    )
    if random or any("Generator" in str(argument.type) for argument in func._schema.arguments):
        raise NoInputs("its results are random, and another provider draws other numbers")
    if not recipes.is_known(op, func.tags):
        raise NoInputs("no operands are known for it")
    reason = ""
    for dtype in _BASES:
        try:
            call = make(op, _SMALLEST, dtype, "cpu")
            call()
        except NotImplementedError:
            # torch implements the operator for devices only. A recipe names the operands; those of a schema
            # alone would be a guess.
            if recipes.find(op) is not None:
                return dtype
            reason = reason or "torch's CPU device does not implement it, and no recipe has its operands"
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            reason = reason or (str(error).splitlines() or [type(error).__name__])[0]
        else:
            return dtype
    raise NoInputs(f"no operands could be made: {reason}"[:300])


def make(op: str, numel: int, dtype: torch.dtype, device: str) -> Call:
    """Returns a call of an operator with operands of about `numel` elements.

    Raises:
        NoInputs: the schema has an argument without a known value.
    """
    maker = Maker(numel, dtype, device)
    recipe = recipes.find(op)
    given = dict(recipe(maker)) if recipe is not None else {}
    arguments = overload(op)._schema.arguments
    if not any("Tensor" in str(argument.type) for argument in arguments):
        raise NoInputs("it has no operand")
    args, kwargs = [], {}
    outputs = []
    omitted = False
    for argument in arguments:
        if argument.is_out:
            outputs.append(argument.name)
            continue
        if argument.name in given and _fits(given[argument.name], str(argument.type)):
            value = given[argument.name]
        elif argument.name in given and "Tensor" in str(argument.type):
            # The recipe has a number, as in clamp.Tensor and _fused_adam_.tensor_lr.
            value = maker.values(*(maker.square if argument.name in ("min", "max") else ()))
        elif argument.has_default_value():
            omitted = True
            continue
        else:
            value = _value(argument, maker, op)
        if argument.kwarg_only or omitted:
            kwargs[argument.name] = value
        else:
            args.append(value)
    if outputs:
        kwargs.update(zip(outputs, _results_of(op, args, kwargs), strict=True))
    return Call(op, tuple(args), kwargs)


def _fits(value: Any, kind: str) -> bool:
    """Whether a recipe's value has the type of an overload's argument: a tensor or not."""
    is_tensor = isinstance(value, torch.Tensor)
    return "Tensor" in kind if is_tensor else not (isinstance(value, (int, float)) and "Tensor" in kind)


def _results_of(op: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Returns tensors for the outputs of an out overload, from a call of the operator's packet."""
    namespace, _, name = op.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name.partition(".")[0])
    result = packet(*args, **kwargs)
    return list(result) if isinstance(result, (list, tuple)) else [result]


_NUMBERS = {
    "dim": -1, "k": 2, "reduction": 0, "eps": 1e-5, "p": 2, "diagonal": 0, "start_dim": 0, "normalization": 0,
    "momentum": 0.1, "decimals": 1, "correction": 1, "n": 1, "align_corners": False, "half_to_float": False,
}  # fmt: skip
_LISTS = {"dim": [-1], "dims": [0], "pad": [1, 1], "shifts": [1], "padding": [1, 1, 1, 1]}


def _value(argument: Any, maker: Maker, op: str) -> Any:
    kind, name = str(argument.type), argument.name
    if kind.startswith("Optional["):
        return _list(name, maker) if kind == "Optional[List[int]]" else None
    if kind == "Tensor":
        if name == "value" or "_foreach_" in op:
            return maker.values()
        if name in ("index", "indices"):
            return maker.index(*maker.square, high=maker.side())
        if name in ("mask", "condition"):
            return maker.mask(*maker.square)
        return maker.values(*maker.square)
    if kind == "List[Tensor]":
        count = 8 if "foreach" in op else 2
        return [maker.values(maker.numel // count) for _ in range(count)]
    if name in _NUMBERS and kind in ("int", "float", "number", "bool"):
        return _NUMBERS[name]
    if kind == "number":
        return 1.5 if maker.dtype.is_floating_point else 2
    if kind == "List[number]":
        return [1.5 if maker.dtype.is_floating_point else 2] * 8
    if kind in ("float", "bool"):
        return {"float": 0.5, "bool": False}[kind]
    if kind == "int" and name.endswith("dtype"):
        return maker.dtype
    if kind == "List[int]" and name in _LISTS:
        return _list(name, maker)
    raise NoInputs(f"no value is known for its argument {name!r}")


def _list(name: str, maker: Maker) -> list[int] | None:
    if name == "dim" and maker.dtype.itemsize == 2:
        return [0]  # as gradients of biases do, so that both directions are measured
    return _LISTS.get(name)


def nbytes(call: Call) -> int:
    """Returns the size of a call's operands in bytes."""
    total = 0

    def add(value: Any) -> Any:
        nonlocal total
        if isinstance(value, torch.Tensor):
            total += value.numel() * value.element_size()
        return value

    call.map(add)
    return total


def large_numel(free: int) -> int:
    """Returns the number of elements of the large case for the free memory in bytes: at most 1e8.

    About ten tensors of float32 exist at a time: operands, results of each provider and copies.
    """
    return min(100_000_000, 10 ** int(math.log10(max(free // (10 * 4 * 2), 1))))
