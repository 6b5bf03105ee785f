# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The operators that several providers serve, and groups of overloads that share their kernels."""

from __future__ import annotations

import difflib
import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from musa_runtime import ops as registry
from musa_runtime import policy
from musa_runtime.errors import UnknownOpError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch._ops import OpOverload


@dataclass(frozen=True)
class Group:
    """Overloads with the same inputs, of which one is measured.

    Attributes:
        op (str): the measured operator, e.g. `"aten::add.Tensor"`.
        providers (tuple of str): its providers in the present order, without copies to the host.
        also (tuple of str): overloads for which the order holds too, e.g. `"aten::add_.Tensor"`.
    """

    op: str
    providers: tuple[str, ...]
    also: tuple[str, ...] = ()


def overload(op: str) -> OpOverload:
    """Returns torch's object for an operator such as `"aten::add.Tensor"`."""
    namespace, _, name = op.partition("::")
    base, _, overload_name = name.partition(".")
    packet = getattr(getattr(torch.ops, namespace), base)
    return getattr(packet, overload_name or "default")


def groups(patterns: Sequence[str] = ()) -> list[Group]:
    """Returns the groups of operators with at least two providers.

    Args:
        patterns (list of str): operators in any spelling of `torch.musa.ops`, or shell-style patterns; none
            for all operators.

    Raises:
        UnknownOpError: a pattern matches no operator, or only operators with one provider.
    """
    rows = {row["op"]: _measurable(row["candidates"]) for row in registry.table()}
    several = {op: providers for op, providers in rows.items() if len(providers) > 1}
    found: dict[tuple[Any, ...], list[str]] = {}
    for op in several:
        found.setdefault(_key(op), []).append(op)
    made = [group for members in found.values() for group in _split(members, several)]
    if patterns:
        wanted = {op for pattern in patterns for op in _matching(pattern, rows, several)}
        made = [group for group in made if wanted.intersection((group.op, *group.also))]
    return sorted(made, key=lambda group: group.op)


def _measurable(candidates: Sequence[str]) -> tuple[str, ...]:
    # Copies wait for the device and cannot be captured in a graph, so they remain the last resort.
    return tuple(name for name in candidates if name != policy.COPIES)


def _key(op: str) -> tuple[Any, ...]:
    """Returns equal values for the functional, in-place and out overloads of an operator."""
    schema = overload(op)._schema
    name = schema.name
    if name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    inputs = tuple(
        (argument.name, str(argument.type)) for argument in schema.arguments if not argument.is_out
    )
    return name, inputs


def _rank(op: str) -> int:
    # A functional call can be repeated with the same operands.
    schema = overload(op)._schema
    writes = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    return 0 if not writes else 1 if any(a.is_out for a in writes) else 2


def _split(members: list[str], providers: dict[str, tuple[str, ...]]) -> list[Group]:
    first, *others = sorted(members, key=lambda op: (_rank(op), op))
    also = [op for op in others if set(providers[op]) <= set(providers[first])]
    rest = [op for op in others if op not in also]
    made = [Group(first, providers[first], tuple(sorted(also)))]
    return made + (_split(rest, providers) if rest else [])


def _matching(pattern: str, rows: dict[str, Any], several: dict[str, Any]) -> list[str]:
    is_pattern = any(character in pattern for character in "*?[")
    name = pattern if is_pattern else registry.op_name(pattern)
    matches = fnmatch.filter(rows, name)
    if not matches and is_pattern and "::" not in name:
        name = f"*::{name}"
        matches = fnmatch.filter(rows, name)
    if not matches and not is_pattern:
        matches = [op for op in rows if op.startswith(f"{name}.")]  # every overload
    if not matches:
        close = difflib.get_close_matches(name, rows, n=5)
        hint = f" Did you mean {', '.join(close)}?" if close else ""
        raise UnknownOpError(
            f"--operators: no operator matches {pattern!r}.{hint}\n"
            "Fix: python -m torch_musa ops lists the operators"
        )
    chosen = [op for op in matches if op in several]
    if not chosen:
        raise UnknownOpError(
            f"--operators: only one provider serves {pattern!r}, so there is nothing to measure.\n"
            f"Fix: python -m torch_musa ops {pattern!r} shows the providers"
        )
    return chosen
