# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finds the provider that served a call, from the operator registry's counters (`torch.musa.ops`)."""

import functools

import torch

from musa_runtime import _load

# Maps operators without their own counters to the operators counted during their calls, such as
# {"aten::convolution": ["aten::convolution_overrideable"]}.
_inner = {}


@functools.cache
def _registry():
    torch.musa.init()
    return _load.extension()


class Probe:
    """Reads the counters of an operator when constructed, and again in `provider`.

    torch composes some operators of others, for example aten::convolution of
    aten::convolution_overrideable. Their first call compares the counters of all operators, which takes about
    50 ms; the result is cached by the operator's name.
    """

    def __init__(self, name):
        self._name = name
        self._all = name not in _inner and not _counted(name)
        self._before = _every_count() if self._all else self._counts()

    def provider(self):
        """Returns the names of providers whose counters have increased, or ""."""
        if self._all:
            after = _every_count()
            grown = {op for (op, _), calls in after.items() if calls > self._before.get((op, _), 0)}
            _inner[self._name] = sorted(grown)
        else:
            after = self._counts()
        used = [key for key, calls in after.items() if calls > self._before.get(key, 0)]
        return ", ".join(
            provider if op == self._name else f"{provider} ({op})" for op, provider in sorted(used)
        )

    def _counts(self):
        return {key: calls for op in _inner.get(self._name, [self._name]) for key, calls in _counts(op)}


@functools.cache
def _counted(name):
    """Whether calls of the operator's own kernels are counted."""
    registry = _registry()
    return registry.ops_has(name) and registry.ops_explain(name)["provider"] != "composite"


def _counts(name):
    registry = _registry()
    if not registry.ops_has(name):
        return []
    candidates = registry.ops_explain(name)["candidates"]
    return [((name, candidate["provider"]), candidate["calls"]) for candidate in candidates]


def _every_count():
    return {
        (row["op"], candidate["provider"]): candidate["calls"]
        for row in _registry().ops_table()
        for candidate in row["candidates"]
    }
