# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators of the musa device with a defect that a test inserts."""

import contextlib
import itertools
import warnings

import torch


@contextlib.contextmanager
def planted(operator, kernel):
    """Makes the operator, e.g. "gelu", run `kernel` on the musa device inside of the block."""
    torch.musa.init()
    with torch.library._scoped_library("aten", "IMPL") as library, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        library.impl(operator, kernel, "PrivateUse1")
        yield


def _host(operator, args, kwargs):
    name, _, overload = operator.partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload or "default")
    return function(*map(_on_host, args), **kwargs)


def _on_host(value):
    if isinstance(value, (list, tuple)):
        return [_on_host(item) for item in value]
    return value.cpu() if isinstance(value, torch.Tensor) else value


def _to_musa(result, change):
    if isinstance(result, torch.Tensor):
        return change(result).to("musa")
    return change(result[0]).to("musa"), *(part.to("musa") for part in result[1:])


def wrong(operator, factor=1.05):
    """A kernel whose first result is `factor` times the right one."""
    return lambda *args, **kwargs: _to_musa(_host(operator, args, kwargs), lambda t: t * factor)


def with_nan(operator):
    """A kernel whose first result has a NaN in its first element."""

    def change(tensor):
        tensor.view(-1)[0] = torch.nan
        return tensor

    return lambda *args, **kwargs: _to_musa(_host(operator, args, kwargs), change)


def varying(operator):
    """A kernel whose first result differs in each call."""
    calls = itertools.count(1)
    return lambda *args, **kwargs: _to_musa(
        _host(operator, args, kwargs), lambda t: t * (1 + 1e-3 * next(calls))
    )
