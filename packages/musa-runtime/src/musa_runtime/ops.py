# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The providers of operators: which one serves an operator, why, and how to choose another.

Each operator has candidates: kernels of packs ("mudnn", "ported", ...) and torch's own CPU kernels ("host"
in place on memory the host can address, "host-copy" on copies). The policy orders them; the first that
accepts the arguments runs. "native" and "cpu", earlier names of "host" and "host-copy", are accepted.

Operators are named `"aten::add.Tensor"`, `"add.Tensor"` or `torch.ops.aten.add.Tensor`; a default overload
has no dot.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from . import policy
from ._load import extension
from .errors import UnknownOpError, UnknownProviderError
from .initialization import lazy_init

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from ._types import Operator


def op_name(op: Operator) -> str:
    """The registry's spelling of an operator.

    Args:
        op (str, OpOverload or OpOverloadPacket): e.g. `"mm"`, `torch.ops.aten.add.Tensor`.
    """
    if not isinstance(op, str):
        # An OpOverload has `_schema`; a packet has only its qualified name, which means the default overload.
        schema = getattr(op, "_schema", None)
        if schema is not None:
            return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        qualified = getattr(op, "_qualified_op_name", None)
        if qualified is None:
            raise UnknownOpError(f"expected an operator or its name, but got {type(op).__name__}: {op!r}")
        return qualified
    name = op.removeprefix("torch.ops.")
    if "::" not in name:
        namespace, dot, rest = name.partition(".")
        # "aten.add.Tensor" is how torch prints an overload; "add.Tensor" has no namespace.
        name = f"aten::{rest}" if dot and namespace == "aten" else f"aten::{name}"
    return name.removesuffix(".default")


def table(pattern: str | None = None) -> list[dict[str, Any]]:
    """Every operator with a candidate, sorted by name.

    Args:
        pattern (str, optional): shell-style, e.g. `"aten::*norm*"`; without a `*` it matches anywhere in the
            name.

    Returns:
        list of dict: `op`, `provider` (whose kernel is installed), `candidates` (names of providers, in the
        order of the policy; those it excludes come last), `calls`, `reason`, `origin` as in :func:`explain`.
    """
    lazy_init()
    rows = sorted(extension().ops_table(), key=lambda row: row["op"])
    if pattern is not None:
        wild = pattern if any(c in pattern for c in "*?[") else f"*{pattern}*"
        rows = [row for row in rows if fnmatch.fnmatchcase(row["op"], wild)]
    return [{**row, "candidates": [c["provider"] for c in _in_order(row["candidates"])]} for row in rows]


def _in_order(candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    excluded = len(candidates)

    def place(candidate: dict[str, Any]) -> tuple[int, str]:
        rank = candidate["rank"]
        return (excluded, candidate["provider"]) if rank is None else (rank, "")

    return sorted(candidates, key=place)


def offers() -> dict[str, int]:
    """Number of operators that each pack's provider has a kernel for, as declared so far."""
    declared: dict[str, int] = extension().ops_declared()
    return {name: count for name, count in declared.items() if name not in policy.OWN_PROVIDERS}


def take_pack_failures() -> list[dict[str, str]]:
    """Return the libraries of packs whose kernels were refused since the last call, and clear the record.

    Returns:
        list of dict: `provider`, `op` (empty if the failure is not about one operator) and `message`,
            which ends with the command that fixes it.
    """
    return extension().take_pack_failures()


def add_provider(name: str, rank: int) -> None:
    """Registers a provider, so that an order may name it, with its rank in the default order.

    Takes effect for operators that are installed later: packs call it, through the loader, before the device
    is initialised.
    """
    extension().ops_add_provider(name, rank)


def explain(op: Operator) -> dict[str, Any]:
    """The provider that serves an operator, and the reason.

    Returns:
        dict: `op`, `provider`, `reason`, `origin`, and `candidates`: a list of `{provider, conditional,
        calls, rank}` in the order of :func:`table`. `origin` is the source of the order: `"default"`,
        `"file"` (measured by `python -m torch_musa tune`), `"TORCH_MUSA_OPS"`, `"prefer"`, `"set_policy"`, or
        `""` for an operator without candidates.

    Raises:
        UnknownOpError: names the closest operators that exist.
    """
    lazy_init()
    name = op_name(op)
    _check_op(name)
    found = extension().ops_explain(name)
    return {**found, "candidates": _in_order(found["candidates"])}


def providers() -> list[str]:
    """Names of the available providers, as a list."""
    lazy_init()
    return policy.known_providers()


def prefer(pattern: Operator, *providers: str) -> Preference:
    """Serve operators by these providers first, in this order, from now on.

    Other threads may call operators meanwhile: each call follows the old order or the new one to its end.
    An operator without a candidate must be preferred before other threads call it.

    Args:
        pattern (str or OpOverload): an operator, or a shell-style pattern such as `"aten::*norm*"`, or `"*"`.
        providers (str): as in :func:`providers`.

    Returns:
        Preference: ignore it, or use it as a context manager to undo the preference at the end of the
        block.

    Raises:
        UnknownProviderError: names the providers that exist.
        UnknownOpError: nothing matches the pattern.
    """
    lazy_init()
    if not providers:
        known = ", ".join(policy.known_providers())
        raise UnknownProviderError(f"prefer({pattern!r}) needs at least one provider; there are: {known}")
    for provider in providers:
        policy.check_provider(provider, f"prefer({pattern!r}, ...)")
    name: Any = pattern
    if not isinstance(pattern, str) or not any(c in pattern for c in "*?["):
        name = op_name(pattern)
        _check_op(name)
    preference = Preference(name, providers)
    extension().ops_prefer(name, list(providers))
    _preferences.append(preference)
    return preference


def reset() -> None:
    """Remove every preference, and restore `TORCH_MUSA_OPS` and the measured orders."""
    lazy_init()
    _preferences.clear()
    extension().ops_reset_policy()


def set_fallback_mode(mode: Literal["allow", "warn", "error"]) -> None:
    """Set the reaction to an operator that runs on copies in host memory.

    Args:
        mode (str): `"allow"`, `"warn"` (once per operator, the default) or `"error"`. `TORCH_MUSA_FALLBACK`
            sets it at start.
    """
    if mode not in ("allow", "warn", "error"):
        raise ValueError(f"the fallback mode must be 'allow', 'warn' or 'error', but got {mode!r}")
    lazy_init()
    extension().set_fallback_mode(mode)


def fallback_report() -> list[dict[str, Any]]:
    """Operators that ran on copies in host memory: a list of `{op, count, bytes}`."""
    lazy_init()
    return extension().fallback_report()


def set_pack_advice(advice: Callable[[str], str]) -> None:
    """Set the function that errors of operators without a pack call.

    Args:
        advice (callable): gets an operator's name such as `"aten::histc"`. Returns sentences that name the op
            packs that are not installed and may serve it, with the fix, or `""`.
    """
    extension().set_pack_advice(advice)


class Preference:
    """An active preference. As a context manager it ends with the block."""

    def __init__(self, pattern: str, providers: tuple[str, ...]) -> None:
        self.pattern = pattern
        self.providers = providers

    def __repr__(self) -> str:
        return f"Preference({self.pattern!r}, {', '.join(map(repr, self.providers))})"

    def __enter__(self) -> Preference:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self not in _preferences:  # reset() was called inside the block
            return
        _preferences.remove(self)
        # The registry cannot remove a single rule: start from the environment's policy, then apply the
        # remaining ones.
        extension().ops_reset_policy()
        for preference in _preferences:
            extension().ops_prefer(preference.pattern, list(preference.providers))


_preferences: list[Preference] = []


def set_policy(specification: str) -> None:
    """Replace the policy, and with it every preference, by a specification as in `TORCH_MUSA_OPS`.

    Args:
        specification (str): e.g. `"mudnn,host"` or `"aten::mm=ported;aten::relu=host"`.

    Raises:
        UnknownProviderError, UnknownOpError: names the offending part; the policy is not changed.
    """
    lazy_init()
    policy.check_specification(specification, "set_policy")
    extension().ops_set_policy(specification)
    _preferences.clear()


def _check_op(name: str) -> None:
    if extension().ops_has(name):
        return
    from difflib import get_close_matches

    names = [row["op"] for row in extension().ops_table()]
    # Overloads first: "aten::add" most likely means one of them.
    close = [other for other in names if other.startswith(f"{name}.")] or get_close_matches(
        name, names, n=5, cutoff=0.6
    )
    hint = f" Did you mean {', '.join(close[:5])}?" if close else ""
    raise UnknownOpError(
        f"there is no operator {name!r} in the op registry.{hint}\n"
        "Fix: python -m torch_musa ops lists the operators"
    )


__all__ = [
    "Preference",
    "explain",
    "fallback_report",
    "prefer",
    "providers",
    "reset",
    "set_fallback_mode",
    "set_policy",
    "table",
]
