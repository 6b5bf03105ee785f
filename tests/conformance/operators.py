# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch's operator database, sorted into the cases that the conformance suite runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_other_op_db,
    foreach_pointwise_op_db,
    foreach_reduce_op_db,
    foreach_unary_op_db,
    op_db,
)
from torch.testing._internal.opinfo.core import ForeachFuncInfo

from .tolerances import Tolerance, tolerance_of

# The dtypes of every variant, and further dtypes of the plain call.
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
MORE_DTYPES = (torch.float16, torch.float64, torch.int32, torch.int16, torch.int8, torch.uint8)
SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
_BLOCKED = (torch.sparse_bsr, torch.sparse_bsc)

# How many samples of an operator the sampled run takes; the complete run (--full) takes all.
SAMPLED = {torch.float32: 3}
SAMPLED_OTHERWISE = 1

# Kernels for these dtypes seldom differ from those for int32, so only the complete run takes them.
_COMPLETE_RUN_ONLY = (torch.int16, torch.int8, torch.uint8)

# Compiled at run time by NVIDIA's or AMD's own compiler: there is no CPU reference to compare with.
_NO_CPU_REFERENCE = ("jiterator_",)

# These return uninitialized memory; only shape, dtype and layout are promised.
UNINITIALISED = frozenset(
    ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
)

# These read past the end of an empty input or leave the result unset: the CPU's own values differ from run
# to run.
UNDEFINED_WHEN_EMPTY = frozenset(
    ("nn.functional.multi_margin_loss", "nn.functional.multilabel_margin_loss", "resize_", "resize_as_")
)

# oneMKL, torch's library on the CPU, refuses a batch without transforms; a device returns no elements.
TRANSFORMS = frozenset(
    f"fft.{kind}fft{dims}" for kind in ("", "i", "r", "ir", "h", "ih") for dims in ("", "2", "n")
)


def are_by_library(device: str) -> bool:
    """Whether the transforms on this device are the device's own, not torch's on the CPU."""
    if device == "cpu":
        return False
    return not torch.musa.ops.explain("aten::_fft_c2c")["provider"].startswith("host")


# These update running statistics in their arguments, which has no meaning for overlapping memory.
WRITES_ITS_ARGUMENTS = frozenset(
    ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update", "nn.functional.batch_norm")
)

# An expanded index names one position several times; which of the elements is stored there is undefined.
REPEATS_WHEN_EXPANDED = frozenset(("index_copy",))

# torch's CPU kernel reads such an argument as if it were contiguous, past its end: the reference itself is
# undefined (torch.masked.median(torch.tensor([-3.0]).expand(5), 0) gives 0 on the CPU).
UNDEFINED_WHEN_EXPANDED = frozenset(("native_group_norm", "masked.median", "median", "nanmedian"))

# Expanded matrices have equal rows, so rounding errors decide these results, which need or detect the rank.
NEED_RANK = frozenset(("linalg.cond", "linalg.lstsq", "linalg.lstsq.grad_oriented", "pinverse"))

# Rounding errors of these grow with the condition of their matrices or with the cancellation of their sums.
# The CPU's library and a device's kernels round in other places.
AMPLIFY_ROUNDING = frozenset(
    (
        "linalg.householder_product",
        "linalg.lstsq",
        "linalg.lstsq.grad_oriented",
        "linalg.pinv",
        "linalg.pinv.hermitian",
        "logcumsumexp",
        "matrix_exp",
    )
)

# Operator -> argument. Expanded counts do not add up to this argument. The kernel that detects this cannot
# raise, so it fails and makes the device unusable, as on CUDA.
CHECKED_BY_KERNELS_WHEN_EXPANDED = {"repeat_interleave": "output_size"}

# These draw from the device's own generator, so their numbers are compared by property (test_random_ops.py).
RANDOM = frozenset(
    (
        "bernoulli",
        "cauchy",
        "exponential",
        "geometric",
        "log_normal",
        "multinomial",
        "nn.functional.alpha_dropout",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.feature_alpha_dropout.with_train",
        "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d",
        "nn.functional.multi_head_attention_forward",
        "nn.functional.rrelu",
        "nn.functional.scaled_dot_product_attention",
        "normal",
        "normal.in_place",
        "normal.number_mean",
        "pca_lowrank",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "svd_lowrank",
        "uniform",
    )
)

OPS = [op for op in op_db if not op.name.startswith(_NO_CPU_REFERENCE)]


# Operators on lists of tensors, which the optimizers are made of.
FOREACH_OPS = [
    *foreach_unary_op_db,
    *foreach_binary_op_db,
    *foreach_pointwise_op_db,
    *foreach_reduce_op_db,
    *foreach_other_op_db,
]
_LIST_LENGTHS = [3]


@dataclass(frozen=True)
class Case:
    """One operator in one dtype (and layout): the case of a single test."""

    op: Any
    dtype: torch.dtype
    layout: torch.layout = torch.strided

    @property
    def name(self) -> str:
        return self.op.full_name

    @property
    def kind(self) -> str:
        """The dtype's name, followed by the layout's where it is not the strided one."""
        dtype = str(self.dtype).removeprefix("torch.")
        return dtype if self.layout is torch.strided else f"{dtype}-{str(self.layout).removeprefix('torch.')}"

    def __str__(self) -> str:
        return f"{self.kind}-{self.name}"

    @property
    def sampled(self) -> bool:
        """Whether the sampled run has it."""
        return self.dtype not in _COMPLETE_RUN_ONLY

    @property
    def tolerance(self) -> Tolerance:
        return tolerance_of(self.op, self.dtype)

    @property
    def tolerance_of_gradients(self) -> Tolerance:
        return tolerance_of(self.op, self.dtype, gradients=True)

    def samples(self, full: bool, requires_grad: bool = False) -> Iterator[Any]:
        """The operator's sample inputs on the CPU: all of them, or the first few."""
        torch.manual_seed(0)
        # The database's own iterators record a stack trace per sample, which costs more than the operator.
        if isinstance(self.op, ForeachFuncInfo):
            function = self.op.sample_inputs_func
            samples = function(self.op, "cpu", self.dtype, requires_grad, num_input_tensors=_LIST_LENGTHS)
        elif self.layout is torch.strided:
            samples = self.op.sample_inputs_func(self.op, "cpu", self.dtype, requires_grad)
        else:
            samples = _sparse_samples(self.op, self.layout, self.dtype)
        return itertools.islice(samples, None if full else SAMPLED.get(self.dtype, SAMPLED_OTHERWISE))


def forward_cases() -> list[Case]:
    """Every operator in every tested dtype that its CPU kernels take."""
    return [
        Case(op, dtype)
        for dtype in (*DTYPES, *MORE_DTYPES)
        for op in OPS
        if op.full_name not in RANDOM and op.supports_dtype(dtype, "cpu")
    ]


def gradient_cases() -> list[Case]:
    """Every differentiable operator, in the real and the complex dtype."""
    return [
        Case(op, dtype)
        for dtype in (torch.float32, torch.complex64)
        for op in OPS
        if op.full_name not in RANDOM | UNINITIALISED
        and op.supports_autograd
        and op.supports_dtype(dtype, "cpu")
        and dtype in op.supported_backward_dtypes("cpu")
    ]


def float_cases() -> list[Case]:
    """Every operator in float32: for promises about arguments that do not depend on the dtype."""
    return [
        case for case in forward_cases() if case.dtype is torch.float32 and case.name not in UNINITIALISED
    ]


def expandable_cases() -> list[Case]:
    excused = WRITES_ITS_ARGUMENTS | REPEATS_WHEN_EXPANDED | UNDEFINED_WHEN_EXPANDED | NEED_RANK
    return [case for case in float_cases() if case.name not in excused]


def expandable_samples(case: Case, full: bool, *, by_value: bool = True) -> Iterator[Any]:
    """Without `by_value`, leaves out samples that a kernel would refuse because of their values."""
    argument = CHECKED_BY_KERNELS_WHEN_EXPANDED.get(case.name)
    return (sample for sample in case.samples(full) if by_value or argument not in sample.kwargs)


def out_cases() -> list[Case]:
    return [case for case in float_cases() if case.op.supports_out]


def in_place_cases() -> list[Case]:
    return [case for case in float_cases() if case.op.get_inplace() is not None]


def sparse_cases() -> list[Case]:
    """Every operator that takes sparse inputs, once per layout it takes."""
    return [
        Case(op, torch.float32, layout)
        for layout in SPARSE_LAYOUTS
        for op in OPS
        if op.full_name not in RANDOM
        and op.supports_sparse_layout(layout)
        and op.supports_dtype(torch.float32, "cpu")
    ]


def _sparse_samples(op: Any, layout: torch.layout, dtype: torch.dtype) -> Iterator[Any]:
    function = getattr(op, f"sample_inputs_{str(layout).removeprefix('torch.')}_func")
    if function.__name__ != "_sample_inputs_unspecified":
        samples = list(function(op, "cpu", dtype, False))
        if samples:
            yield from samples
            return
    # The database marks support for more layouts than it has samples for: the others are made from dense
    # ones.
    for sample in op.sample_inputs_func(op, "cpu", dtype, False):
        if isinstance(sample.input, torch.Tensor) and _takes(layout, sample.input):
            yield sample.transform(lambda value: _sparse(value, layout))


def _takes(layout: torch.layout, tensor: torch.Tensor) -> bool:
    return tensor.ndim >= 1 if layout is torch.sparse_coo else tensor.ndim == 2


def _sparse(value: Any, layout: torch.layout) -> Any:
    if not isinstance(value, torch.Tensor) or not _takes(layout, value):
        return value
    # Zeros, so that the sparse layout leaves out some elements.
    value = value * (torch.arange(value.numel()).view(value.shape) % 3 == 0)
    return value.to_sparse(layout=layout, blocksize=(1, 1) if layout in _BLOCKED else None)


def error_cases() -> list[Case]:
    """Every operator that lists inputs which the CPU must refuse (some list them for other devices only)."""
    return [Case(op, torch.float32) for op in OPS if next(error_inputs(op), None) is not None]


def error_inputs(op: Any, *, by_value: bool = True) -> Iterator[Any]:
    """Samples that `op` must refuse on the CPU. Without `by_value`, those which the database lists for other
    devices too: a kernel that finds an index out of range cannot raise and makes the device unusable.
    """
    if op.error_inputs_func is None:
        return
    samples = op.error_inputs_func(op, "cpu")
    if by_value:
        yield from samples
        return
    elsewhere = {(error.error_type, error.error_regex) for error in op.error_inputs_func(op, "meta")}
    yield from (error for error in samples if (error.error_type, error.error_regex) in elsewhere)


# The database lists these for the CPU, whose kernel raises. CUDA and musa take them: test_cuda_dtypes.py.
_REFUSED_BY_THE_CPU = {("_foreach_abs", torch.bool)}


def foreach_cases() -> list[Case]:
    """Every operator on lists of tensors, in every tested dtype that its CPU kernels take."""
    return [
        Case(op, dtype)
        for dtype in DTYPES
        for op in FOREACH_OPS
        if op.supports_dtype(dtype, "cpu") and (op.name, dtype) not in _REFUSED_BY_THE_CPU
    ]


def foreach_in_place_cases() -> list[Case]:
    return [case for case in foreach_cases() if case.op.get_inplace() is not None]


def random_cases() -> list[Case]:
    """Every operator that draws random numbers, in every tested dtype that its CPU kernels take."""
    return [
        Case(op, dtype)
        for dtype in DTYPES
        for op in OPS
        if op.full_name in RANDOM and op.supports_dtype(dtype, "cpu")
    ]
