# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The order of providers from their times: never a slower provider in any case, if another one is not."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    # case -> provider -> time of each round, of which the k-th ones were measured one after the other
    Times = Mapping[str, Mapping[str, Sequence[float]]]

SLOWER = 1.05  # ratio of times from which a provider is slower, and from which another one replaces it


def order(times: Times, present: Sequence[str], wrong: Sequence[str] = ()) -> list[str]:
    """Returns all providers, the best first.

    Args:
        times (dict): rounds in microseconds, by case and provider. A provider without an entry declined.
        present (list of str): the providers in the present order.
        wrong (list of str): providers with wrong results; they come last.
    """
    right = [name for name in present if name not in wrong]
    measured = [name for name in right if any(name in rounds for rounds in times.values())]
    ordered: list[str] = []
    cases = [{name: rounds[name] for name in measured if name in rounds} for rounds in times.values()]
    remaining = list(measured)
    while remaining:
        best = _best(cases, remaining)
        ordered.append(best)
        remaining.remove(best)
        # Calls that the best one declines reach the next ones; their order matters there.
        declined = [case for case in cases if best not in case]
        cases = declined or [{k: v for k, v in case.items() if k != best} for case in cases]
        cases = [case for case in cases if case]
    # A provider that declined every case keeps its place.
    taken = iter(ordered)
    places = [next(taken) if name in measured else name for name in right]
    return places + [name for name in present if name in wrong]


def _best(cases: Sequence[Mapping[str, Sequence[float]]], present: Sequence[str]) -> str:
    serving = [name for name in present if any(name in case for case in cases)]
    if not serving:
        return present[0]
    first = serving[0]
    never_slower = [name for name in serving if not any(_is_slower(name, case) for case in cases)]
    if first in never_slower:
        return first  # whatever the noise of the means
    gains = {name: gain(cases, first, name) for name in never_slower or serving}
    best = max(gains, key=gains.__getitem__)
    return best if gains[best] > (1.0 if never_slower else SLOWER) else first


def _is_slower(name: str, case: Mapping[str, Sequence[float]]) -> bool:
    """Whether a provider is slower than another one: its rounds take longer by 5 % in the median, and most of
    them take longer."""
    mine = case.get(name)
    if mine is None:
        return False
    for other, rounds in case.items():
        if other != name:
            ratios = sorted(a / b for a, b in zip(mine, rounds, strict=False))
            if statistics.median(ratios) > SLOWER and ratios[(len(ratios) - 1) // 4] > 1:
                return True
    return False


def gain(cases: Iterable[Mapping[str, Sequence[float]]], before: str, after: str) -> float:
    """Returns the geometric mean of a provider's time divided by another one's, over their common cases."""
    ratios = [
        statistics.median(rounds[before]) / statistics.median(rounds[after])
        for rounds in cases
        if before in rounds and after in rounds
    ]
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else 1.0
