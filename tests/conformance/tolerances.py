# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tolerances of comparisons with the CPU. All numbers are torch's own.

The tolerance of a result is the default of torch.testing for its dtype. With `toleranceOverride` the
databases widen it for single operators, modules and optimizers in tests of torch by name; the largest
override that applies to a test like ours is taken, for the dtype of the case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo

# Classes of torch's tests that compare a kernel's values with a reference: the CPU, numpy, another form of
# the call, other strides. None is an override for every test. Tests of compilers, of decompositions and of
# distributed tensors do not test kernels.
_JUDGES = frozenset(
    (
        None,
        "TestBinaryUfuncs",
        "TestBinaryUfuncsDevice",
        "TestCommon",
        "TestConsistency",
        "TestFFT",
        "TestMasked",
        "TestMathBits",
        "TestModule",
        "TestOptimRenewed",
        "TestReductions",
        "TestSparse",
        "TestSparseCompressed",
        "TestUnaryUfuncs",
    )
)
# Those that compare gradients.
_JUDGES_OF_GRADIENTS = frozenset(
    ("TestBwdGradients", "TestCompositeCompliance", "TestFwdGradients", "TestOperators")
)
# It compares complex32 on a device with single precision. The arithmetic is float16's, and bfloat16's is
# coarser.
_TEST_OF_HALF_ARITHMETIC = "test_complex_half_reference_testing"
_HALVES = (torch.float16, torch.bfloat16)
# Overrides for other devices describe limits of those devices.
_DEVICES = (None, "cpu", "cuda")


@dataclass(frozen=True)
class Tolerance:
    """The least relative and absolute tolerance; a dtype's default may be larger."""

    rtol: float = 0.0
    atol: float = 0.0

    def for_value(self, value: Any) -> tuple[float, float]:
        """rtol and atol for a tensor or a number. Integers and bool are always compared exactly."""
        dtype = value.dtype if isinstance(value, torch.Tensor) else _DTYPES_OF_NUMBERS[type(value)]
        rtol, atol = default_tolerances(dtype)
        if not (dtype.is_floating_point or dtype.is_complex):
            return rtol, atol
        return max(rtol, self.rtol), max(atol, self.atol)


_DTYPES_OF_NUMBERS = {int: torch.int64, float: torch.float64, complex: torch.complex128}

DEFAULT = Tolerance()


def tolerance_of(info: Any, dtype: torch.dtype, *, gradients: bool = False) -> Tolerance:
    """The tolerance of an OpInfo, ModuleInfo or OptimizerInfo in `dtype`; with `gradients`, for gradients."""
    overrides = list(_overrides(info, dtype, _JUDGES | _JUDGES_OF_GRADIENTS if gradients else _JUDGES))
    return Tolerance(
        rtol=max((override.rtol for override in overrides), default=0.0),
        atol=max((override.atol for override in overrides), default=0.0),
    )


def _overrides(info: Any, case_dtype: torch.dtype, judges: frozenset) -> Iterator[Any]:
    for entry in info.decorators:
        decorators, dtype = (entry,), case_dtype
        if isinstance(entry, DecorateInfo):
            if entry.cls_name not in judges or entry.device_type not in _DEVICES or not entry.active_if:
                continue
            decorators = entry.decorators
            if dtype in _HALVES and entry.test_name == _TEST_OF_HALF_ARITHMETIC:
                dtype = torch.complex32
        for decorator in decorators:
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                yield decorator.d[dtype]
