# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finds providers of measured operators: muDNN, torch's own kernels ("host"), the runtime, a pack."""

import os
from collections import Counter
from collections.abc import Callable

import torch

from musa_runtime import measured_orders

# Computed without work on the device.
IDLE = {"aten::_fused_sdp_choice"}

# (operator, provider) -> number of calls.
Calls = Counter[tuple[str, str]]


def calls_so_far() -> Calls:
    """Returns the op registry's counts, which exclude the runtime's allocations, views and copies.

    Composite operators are not counted, but the operators that they call are.
    """
    ops = torch.musa.ops
    counted = [row["op"] for row in ops.table() if row["calls"] and row["op"] not in IDLE]
    return Counter(
        {(op, offer["provider"]): offer["calls"] for op in counted for offer in ops.explain(op)["candidates"]}
    )


def calls_of(run: Callable[[], object]) -> Calls:
    """Returns the calls that ``run()`` makes."""
    before = calls_so_far()
    run()
    return calls_so_far() - before


def by_provider(calls: Calls) -> dict[str, int]:
    """Returns the number of calls per provider, in descending order."""
    totals: Counter[str] = Counter()
    for (_, provider), count in calls.items():
        totals[provider] += count
    return dict(totals.most_common())


def served_by(run: Callable[[], object], device: torch.device) -> str:
    """Returns the providers of ``run()``, as `mudnn 95 %, host 5 %`, or "" without a registry."""
    if device.type != "musa":
        return ""
    totals = by_provider(calls_of(run))
    if len(totals) < 2:
        return next(iter(totals), "runtime")
    return ", ".join(f"{name} {count / sum(totals.values()):.0%}" for name, count in totals.items())


def policy() -> dict:
    """Returns the current policy: the setting, and the number of operators per first provider."""
    first = Counter(row["provider"] for row in torch.musa.ops.table())
    measured = measured_orders.state()
    return {
        "TORCH_MUSA_OPS": os.environ.get("TORCH_MUSA_OPS") or None,
        "measured orders": measured.path if measured.applied else None,
        "first": dict(first.most_common()),
    }


def policy_text(told: dict) -> str:
    wanted = told["TORCH_MUSA_OPS"]
    first = ", ".join(
        f"{name} {count}" for name, count in told["first"].items() if name not in ("composite", "none")
    )
    asked = f"TORCH_MUSA_OPS={wanted}" if wanted else "the default order of providers"
    if told.get("measured orders"):
        asked += f" and the measured orders in {told['measured orders']}"
    return f"operators by {asked}; first for so many of them: {first}"
