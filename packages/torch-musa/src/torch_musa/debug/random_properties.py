# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks operators that draw random numbers, whose results cannot be compared by element.

Each check returns None, or a sentence that describes the error.
"""

import math

import torch

_SIGMAS = 6.0  # a correct generator fails a check of a mean once in 500 million calls
_ENOUGH = 1000  # minimum number of elements for checks of means


def check(call, result):
    """Checks the properties of a random operator's result.

    Args:
        call (OperatorCall): the call.
        result (Tensor or list of Tensor): its outputs on the CPU, in the order of `call.outputs`.

    Returns:
        tuple of (bool, str or None): whether the operator has a check, and the error or None.
    """
    values = dict(call.named_arguments)
    rule = _RULES.get(call.base_name)
    if rule is None:
        return False, None
    return True, rule(values, *result)


def _range_and_mean(tensor, low, high, mean, deviation, closed=True):
    """Checks that values are in range and that their mean is that of the distribution."""
    if not tensor.numel():
        return None
    tensor = tensor.to(torch.float64)
    least, most = float(tensor.min()), float(tensor.max())
    if least < low or most > high or math.isnan(least) or (not closed and most >= high):
        return f"values from {least} to {most} are outside of [{low}, {high}{']' if closed else ')'}"
    count = tensor.numel()
    if deviation is None or count < _ENOUGH:
        return None
    found = float(tensor.mean())
    if abs(found - mean) > _SIGMAS * deviation / math.sqrt(count) + 1e-2 * deviation:
        return f"the mean of {count} values is {found}, but the distribution's is {mean}"
    return None


def _uniform(values, result):
    low, high = values.get("from", 0.0), values.get("to", 1.0)
    # Rounding to a short dtype may give the upper bound.
    return _range_and_mean(result, low, high, (low + high) / 2, (high - low) / math.sqrt(12))


def _unit_uniform(values, result):
    return _range_and_mean(result, 0.0, 1.0, 0.5, 1 / math.sqrt(12))


def _normal(values, result):
    mean, deviation = values.get("mean", 0.0), values.get("std", 1.0)
    if isinstance(mean, torch.Tensor) or isinstance(deviation, torch.Tensor):
        mean, deviation = 0.0, None
    if result.is_complex():
        result, mean, deviation = torch.view_as_real(result), 0.0, None
    return _range_and_mean(result, -math.inf, math.inf, mean, deviation)


def _bernoulli(values, result):
    wrong = (result != 0) & (result != 1)
    if bool(wrong.any()):
        return f"{int(wrong.sum())} values are neither 0 nor 1"
    p = values.get("p")  # in the overload without `p`, the input contains a probability per element
    if not isinstance(p, float):
        return None
    return _range_and_mean(result, 0.0, 1.0, p, math.sqrt(p * (1 - p)))


def _integers(values, result):
    low, high = values.get("low", values.get("from", 0)), values.get("high", values.get("to"))
    if not isinstance(high, int) or not isinstance(low, int):
        return _range_and_mean(result, -math.inf, math.inf, 0.0, None)
    return _range_and_mean(result, low, high - 1, (low + high - 1) / 2, (high - low) / math.sqrt(12))


def _permutation(values, result):
    wanted = torch.arange(values["n"], dtype=result.dtype)
    return None if torch.equal(result.sort().values, wanted) else f"not a permutation of {values['n']} values"


def _dropout(values, result, mask):
    p = float(values["p"])
    if not values.get("train", True):
        return None
    source = values["input"].cpu()
    scale = 0.0 if p == 1 else 1 / (1 - p)
    wanted = (source.to(torch.float64) * mask * scale).to(result.dtype)
    if not torch.allclose(result, wanted, rtol=1e-2, equal_nan=True):
        return "the result is not the input times the mask times 1 / (1 - p)"
    return _range_and_mean(mask, 0.0, 1.0, 1 - p, math.sqrt(p * (1 - p)))


def _indices(values, result):
    return _range_and_mean(result, 0, values["self"].shape[-1] - 1, 0.0, None)


def _positive(values, result):
    return _range_and_mean(result, 0.0, math.inf, 0.0, None)


_RULES = {
    "uniform_": _uniform,
    "rand": _unit_uniform,
    "rand_like": _unit_uniform,
    "normal_": _normal,
    "normal": _normal,
    "randn": _normal,
    "randn_like": _normal,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli,
    "randint": _integers,
    "randint_like": _integers,
    "random_": _integers,
    "randperm": _permutation,
    "native_dropout": _dropout,
    "multinomial": _indices,
    "exponential_": _positive,
    "geometric_": _positive,
}
