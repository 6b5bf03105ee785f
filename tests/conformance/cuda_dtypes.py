# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Cases for the dtypes that CUDA takes, by torch's operator database, instead of those that the CPU takes.

If the CPU has no kernel for a dtype, the reference is the CPU's result in a wider dtype, rounded to the
dtype.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from .comparison import FarApart, outcome_of, require_nearer, require_same
from .float_statistics import with_float_statistics
from .operators import OPS, RANDOM, UNINITIALISED
from .places import has_equal_elements, settled
from .tolerances import Tolerance, tolerance_of
from .transfer import tensors_in
from .variants import arguments_on

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest itself depends on tomli there
    import tomli as tomllib

GAPS_FILE = Path(__file__).with_name("cuda_dtype_gaps.toml")
LIMIT = 15

_HALVES = (torch.float16, torch.bfloat16)
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# The first of these that the CPU takes holds every value of the dtype exactly.
_WIDER = {
    torch.float16: (torch.float32, torch.float64),
    torch.bfloat16: (torch.float32, torch.float64),
    torch.complex32: (torch.complex64, torch.complex128),
    torch.bool: (torch.uint8, torch.int64),
    **dict.fromkeys(_INTEGERS, (torch.float64,)),
}


def _sum_of_numbers(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return torch.sum(torch.where(x.isnan(), 0, x), *args, **kwargs)


def _mean_of_numbers(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    kwargs.pop("dtype", None)
    return _sum_of_numbers(x, *args, **kwargs) / _sum_of_numbers((~x.isnan()).to(x.dtype), *args, **kwargs)


# The CPU has these for no complex dtype at all, so the reference is composed.
_COMPOSED = {"nansum": _sum_of_numbers, "nanmean": _mean_of_numbers}


# A step of the gradient's formula is too large for the dtype though the gradient is not, as on CUDA.
_OVERFLOWS = frozenset(("logaddexp", "pow", "polygamma"))

# The absolute error of gradients of 16-bit inputs. torch's CPU kernel computes (x - mean) * rstd as
# x * rstd - mean * rstd, which should be 0 for rows of one element. Products of 16-bit statistics are exact,
# those of float32 statistics are rounded, and rstd is up to 1 / sqrt(1e-5).
_CANCELLED = {"nn.functional.layer_norm": 1e-4}


@dataclass(frozen=True)
class Pair:
    """An operator and a dtype that it has on CUDA."""

    op: Any
    dtype: torch.dtype

    @property
    def name(self) -> str:
        return self.op.full_name

    @property
    def kind(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def __str__(self) -> str:
        return f"{self.kind}-{self.name}"

    @property
    def differentiable(self) -> bool:
        return (
            self.op.supports_autograd
            and self.name not in UNINITIALISED
            and self.dtype in self.op.supported_backward_dtypes("cuda")
        )

    @property
    def sampled(self) -> bool:
        """Whether the sampled run has the pair: it has those that the CPU and so all other suites lack."""
        on_cpu = self.dtype in self.op.supported_dtypes("cpu")
        return not (on_cpu and (not self.differentiable or self.dtype in _backward_dtypes_of_cpu(self.op)))

    def samples(self, full: bool, requires_grad: bool) -> Iterator[Any]:
        torch.manual_seed(0)
        samples = self.op.sample_inputs_func(self.op, "cpu", self.dtype, requires_grad)
        # Other suites take all samples of the dtypes that the CPU has.
        for sample in itertools.islice(samples, None if full and self.sampled else 3):
            options = sample.kwargs.get("options")
            if getattr(options, "acc_policy", None) == "auto":
                # linear_cross_entropy takes the policy from a table by device type, so results would be
                # rounded differently.
                precise = torch.float32 if self.dtype in _HALVES else self.dtype
                sample.kwargs["options"] = replace(options, acc_policy="accurate", acc_dtype=precise)
            yield sample

    def judge_forward(self, sample: Any, device: str) -> None:
        """Raise Mismatch unless the plain call gives what the reference gives."""
        tolerance = tolerance_of(self.op, self.dtype)
        values = self.name not in RANDOM | UNINITIALISED
        cpu = self.op.supported_dtypes("cpu")
        self._judge(self._forward, sample, device, cpu, tolerance, values, settle=True)

    def judge_gradient(self, sample: Any, device: str) -> None:
        """Raise Mismatch unless the gradients for one fixed cotangent are those of the reference."""
        tolerance = tolerance_of(self.op, self.dtype, gradients=True)
        if self.dtype in _HALVES:
            tolerance = replace(tolerance, atol=max(tolerance.atol, _CANCELLED.get(self.name, 0.0)))
        cpu = _backward_dtypes_of_cpu(self.op)
        values = (
            self.name not in RANDOM
            and (self.dtype in cpu or self.op.name not in _OVERFLOWS)
            # Any of the equal elements may receive the gradient.
            and not has_equal_elements(self.op, (sample.input, sample.args, sample.kwargs))
        )
        self._judge(self._gradients, sample, device, cpu, tolerance, values, in_steps=True)

    def _judge(
        self,
        run: Callable,
        sample: Any,
        device: str,
        cpu: set,
        tolerance: Tolerance,
        values: bool,
        *,
        settle: bool = False,
        in_steps: bool = False,
    ) -> None:
        op = _COMPOSED.get(self.name, self.op) if self.dtype not in cpu else self.op
        on_device = run(self.op, _moved(self.op, sample, device), device)
        for reference in self._references(cpu):
            wide = _converted(sample, self.dtype, reference)
            expected = outcome_of(lambda: run(op, _moved(self.op, wide, "cpu"), "cpu"))  # noqa: B023
            if not isinstance(expected.error, NotImplementedError):
                break
        if expected.error is not None:
            raise AssertionError(f"the reference in {reference} raised") from expected.error
        narrowed = _rounded(expected.value, on_device, reference, self.dtype)
        if settle:
            arguments = (sample.input, sample.args, sample.kwargs)
            narrowed = with_float_statistics(self.op, arguments, narrowed, device)
            on_device = settled(self.op, arguments, narrowed, on_device)
        if in_steps and reference is not self.dtype:
            tolerance = _of_rounded_steps(narrowed, self.dtype, tolerance)
        try:
            require_same(narrowed, on_device, device, values=values, tolerance=tolerance)
        except FarApart:
            # If other steps are rounded, the device must not be farther than the CPU from the exact result.
            exact_dtype = torch.complex128 if self.dtype.is_complex else torch.float64
            if self.dtype not in cpu or not (self.dtype.is_floating_point or self.dtype.is_complex):
                raise
            exact = run(self.op, _moved(self.op, _converted(sample, self.dtype, exact_dtype), "cpu"), "cpu")
            if in_steps and self.dtype in _HALVES:
                tolerance = replace(tolerance, atol=max(tolerance.atol, 4 * _error_of(narrowed, exact)))
            require_nearer(narrowed, on_device, exact, device, tolerance=tolerance)

    def _references(self, cpu: set) -> list[torch.dtype]:
        """Dtypes in which the CPU may compute the operator, the best first. It may lack a kernel of the
        gradient in the first: the gradient of a broadcast operand is a sum, which the CPU lacks in complex32.
        """
        wider = _WIDER.get(self.dtype, ())
        return [dtype for dtype in (self.dtype, *wider) if dtype in cpu] or [*wider, self.dtype][:1]

    @staticmethod
    def _forward(op: Callable, sample: Any, device: str) -> Any:
        with torch.device(device):
            return op(sample.input, *sample.args, **sample.kwargs)

    @staticmethod
    def _gradients(op: Callable, sample: Any, device: str) -> tuple:
        result = sample.output_process_fn_grad(op(sample.input, *sample.args, **sample.kwargs))
        outputs = [tensor for tensor in tensors_in(result) if tensor.requires_grad]
        inputs = [
            tensor
            for tensor in tensors_in((sample.input, sample.args, sample.kwargs))
            if tensor.requires_grad
        ]
        if not outputs:
            return ()
        torch.manual_seed(1)
        gradients = torch.autograd.grad(
            outputs, inputs, [_cotangent(out) for out in outputs], allow_unused=True
        )
        return tuple(gradient for gradient in gradients if gradient is not None)


def _cotangent(out: torch.Tensor) -> torch.Tensor:
    """Random numbers that every floating-point dtype holds exactly; ones would hide gradients of norms."""
    if out.layout is not torch.strided or out.is_nested:
        return out.detach()
    return torch.randn(out.shape, device="cpu").bfloat16().to(out.device, out.dtype)


def _backward_dtypes_of_cpu(op: Any) -> set:
    return op.supported_backward_dtypes("cpu") if op.supports_autograd else set()


def _moved(op: Any, sample: Any, device: str) -> Any:
    """The sample with its tensors on `device`; leaves stay leaves."""
    moved = sample.transform(lambda value: value)
    moved.input, moved.args, moved.kwargs = arguments_on(op, sample, device)
    return moved


def _converted(sample: Any, narrow: torch.dtype, wide: torch.dtype) -> Any:
    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype is narrow:
            return value.detach().to(wide).requires_grad_(value.requires_grad)
        return wide if value is narrow else value

    return sample if narrow is wide else sample.transform(convert)


def _rounded(expected: Any, actual: Any, wide: torch.dtype, narrow: torch.dtype) -> Any:
    """Rounds tensors of the wide dtype, and of its real or complex counterpart, to the device's dtype."""
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        widened = {wide: narrow}
        if narrow in (torch.float16, torch.complex32):
            widened |= {wide.to_real(): torch.float16, wide.to_complex(): torch.complex32}
        return expected.to(actual.dtype) if widened.get(expected.dtype) is actual.dtype else expected
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        parts = [_rounded(left, right, wide, narrow) for left, right in zip(expected, actual)]
        return type(expected)(*parts) if hasattr(expected, "_fields") else type(expected)(parts)
    return expected


def _of_rounded_steps(expected: tuple, dtype: torch.dtype, least: Tolerance) -> Tolerance:
    """The tolerance for gradients whose formula rounds each step to `dtype`, while the reference rounds once:
    8 units in the last place, also of the largest value, because steps of that size may cancel.
    """
    largest = max((float(each.abs().max()) for each in expected if each.numel()), default=0.0)
    epsilon = torch.finfo(dtype).eps
    return Tolerance(
        rtol=max(least.rtol, 8 * epsilon), atol=max(least.atol, 8 * epsilon * min(max(largest, 0.1), 1e4))
    )


def _error_of(rounded: tuple, exact: tuple) -> float:
    """The largest error of gradients whose formula rounds each step, which is an error of rounding alone."""
    differences = ((left.double() - right.double()).abs() for left, right in zip(rounded, exact))
    return max((float(each.max()) for each in differences if each.numel()), default=0.0)


@cache
def pairs() -> tuple[Pair, ...]:
    """Every operator of the database in every dtype that it has on CUDA."""
    return tuple(Pair(op, dtype) for op in OPS for dtype in sorted(op.supported_dtypes("cuda"), key=str))


def parse(text: str) -> dict[tuple[str, str], str]:
    """(operator, dtype) -> reason. Raises ValueError for one without a reason, one twice, or too many."""
    gaps: dict[tuple[str, str], str] = {}
    for entry in tomllib.loads(text).get("gap", []):
        key = (entry["operator"], entry["dtype"])
        if key in gaps:
            raise ValueError(f"listed twice: {key}")
        if len(entry["reason"].split()) < 5:
            raise ValueError(
                f"{key}: the reason must say why the dtype is not taken, not {entry['reason']!r}"
            )
        gaps[key] = entry["reason"]
    if len(gaps) > LIMIT:
        raise ValueError(f"{len(gaps)} gaps are listed; at most {LIMIT} are allowed")
    return gaps


def gaps() -> dict[tuple[str, str], str]:
    return parse(GAPS_FILE.read_text(encoding="utf-8"))
