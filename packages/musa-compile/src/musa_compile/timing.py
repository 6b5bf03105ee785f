# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measures kernel times, by which Inductor chooses among configurations of a kernel."""

import contextlib
import statistics

import torch
from torch import musa
from torch._inductor.runtime import benchmarking

from . import _compat

# A lock that a program gives torch for its measurements; torch 2.13 and later.
_lock = getattr(benchmarking, "maybe_gpu_benchmark_lock", contextlib.nullcontext)

_MOST = 100  # maximum number of measured runs, and of warm-up runs


def register():
    """Register with Inductor, which otherwise measures with CUDA's events."""
    _compat.register_benchmarker(measure)


def measure(benchmarker, function, *, warmup=25, rep=100, is_vetted_benchmarking=False, **_):
    """Measures the time of a call on the current stream of the current device.

    Args:
        benchmarker (torch._inductor.runtime.benchmarking.Benchmarker): not used.
        function (callable): enqueues work; called without arguments.
        warmup (int): milliseconds of warm-up calls.
        rep (int): milliseconds of measured calls.
        is_vetted_benchmarking (bool): whether the result cannot affect numerics, see
            `torch._inductor.config.deterministic`.

    Returns:
        float: milliseconds, the median of the measured calls.
    """
    if not is_vetted_benchmarking:
        benchmarking.may_ban_benchmarking()
    with _lock():
        function()  # compiles, allocates
        musa.synchronize()
        evict = _eviction()
        once = _run(function, evict, 5)
        estimate = max(statistics.median(once), 1e-3)
        _run(function, evict, min(int(warmup / estimate), _MOST))
        return statistics.median(_run(function, evict, min(max(int(rep / estimate), 1), _MOST)))


def _run(function, evict, count):
    events = [(musa.Event(enable_timing=True), musa.Event(enable_timing=True)) for _ in range(count)]
    for start, end in events:
        evict.zero_()
        start.record()
        function()
        end.record()
    musa.synchronize()
    return [start.elapsed_time(end) for start, end in events]


def _eviction():
    """Returns memory of the cache's size: writing it evicts the operands, as other kernels would."""
    size = getattr(musa.get_device_properties(musa.current_device()), "L2_cache_size", 0)
    return torch.empty(max(size, 4) // 4, dtype=torch.int32, device="musa")
