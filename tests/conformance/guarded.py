# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""out= arguments inside larger buffers: an operator may write to their elements, and to no other byte.

Each overload with out= arguments is called with tensors of other dtypes, shapes and strides than its
results, whether or not it accepts them. The other arguments are those of its functional form in the
database, or of own_samples.OWN.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.testing._comparison import default_tolerances

from . import operators, own_samples
from .comparison import FarApart, Mismatch, Outcome, outcome_of, require_same
from .tolerances import DEFAULT, Tolerance
from .transfer import tensors_in, to_device

# Narrower and wider than the results, and of each other kind.
DTYPES = (
    *(torch.bool, torch.int8, torch.int32, torch.int64),
    *(torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128),
)
_RECORDED_DTYPES = (torch.float32, torch.int64, torch.bool)
_EVERY = 5  # of the operators, in the sampled run
_CALLS = 2  # of an overload and dtype
_MOST_ELEMENTS = 5000  # of a result; larger samples cost time only
# torch's CPU kernel does not check the dtype of out=, and writes past the end of a narrower one. host-copy
# runs it on memory without guards.
_UNCHECKED_ON_CPU = ("_logcumsumexp.out",)
# torch's CPU kernels ignore strides of images with the channels last (test_wrong_on_the_cpu.py).
_WRONG_FOR_CHANNELS_LAST = (
    *("_masked_softmax.out", "fractional_max_pool2d_backward.grad_input"),
    *("replication_pad2d.out", "replication_pad3d.out"),
)
# torch's CPU kernel divides by the step, which is 0 as an integer: the process ends.
_ENDS_THE_PROCESS_ON_CPU = ("range.out",)
# Random numbers, the places of equal elements, and a buffer of which each device makes its own use.
_VALUES_ARE_OPEN = (
    *("normal", "rrelu_with_noise", "randperm", "multinomial", "bernoulli", "native_dropout"),
    *("kthvalue", "topk", "sort", "mode", "median", "nanmedian"),
    *("log_sigmoid_forward",),
)
# Some kernels of devices compute in the dtype of out=, as torch's for CUDA do, and refuse dtypes that they do
# not have ("not implemented for"). Reductions with two results need equal strides on devices.
_REFUSED_ON_DEVICES = (
    *(
        "aminmax",
        "max.dim_max",
        "min.dim_min",
        "max.unary_out",
        "min.unary_out",
        "col2im",
        "im2col",
        "pow.Scalar_out",
    ),
    *("std", "var", "mode", "cummax", "cummin", "_logcumsumexp"),
)
# The device computes into a temporary and copies it to out=, so it accepts dtypes that the CPU refuses.
_REFUSED_BY_THE_CPU = (
    *("log_sigmoid", "multi_margin_loss", "multilabel_margin_loss", "nll_loss2d", "max_unpool", "gelu"),
    *("native_batch_norm", "_native_batch_norm", "_batch_norm_with_update", "norm", "nansum", "randperm"),
    "binary_cross_entropy",
)
# torch's CPU kernels of these do not resize every result, or resize one that others do not.
_SHAPES_ARE_OPEN = (
    *("_batch_norm_with_update", "native_batch_norm", "_native_batch_norm_legit", "_embedding_bag"),
    *("binary_cross_entropy", "rrelu_with_noise", "log_sigmoid_forward"),
)
_GUARD = 0xA5
_FRONT = 512  # guard bytes before the tensor


_X = torch.linspace(-2, 2, 12).view(3, 4).sin()
_INDEX = torch.tensor([[0, 2, 1, 0]])
# Overloads whose functional form the database does not call, or only with large or sparse tensors.
_OWN: dict[str, tuple[tuple, dict]] = {
    "mul.out": ((_X, _X), {}),
    "div.out": ((_X, _X), {}),
    "mm.out": ((_X, _X.mT), {}),
    "addmm.out": ((_X[:, :3], _X, _X.mT), {}),
    "amax.out": ((_X, [1]), {}),
    "linalg_det.out": ((_X[:, :3],), {}),
    "linalg_solve_ex.out": ((_X[:, :3], _X), {}),
    "_logcumsumexp.out": ((_X, 1), {}),
    "_native_batch_norm_legit.no_stats_out": ((_X, None, None, True, 0.1, 1e-5), {}),
    "all.dims_out": ((_X > 0, [0, 1]), {}),
    "any.dims_out": ((_X > 0, [1]), {}),
    "arange.start_out": ((0, 7), {}),
    "clamp.out": ((_X, -0.5, 0.5), {}),
    "eye.out": ((3,), {}),
    "eye.m_out": ((3, 4), {}),
    "lerp.Tensor_out": ((_X, _X + 1, _X), {}),
    "linspace.out": ((0, 8, 5), {}),
    "logspace.out": ((0, 4, 5), {}),
    "scatter.value_reduce_out": ((_X, 0, _INDEX, 2.0), {"reduce": "add"}),
    "searchsorted.Scalar_out": ((torch.arange(5.0), 2.5), {}),
    "sort.values_stable": ((_X,), {"stable": True}),
    "im2col.out": ((torch.linspace(-2, 2, 120).view(2, 3, 4, 5), [2, 3], [1, 1], [1, 0], [2, 1]), {}),
}


@dataclass(frozen=True)
class Kind:
    """How a tensor for out= differs from the result: in dtype, shape or strides."""

    name: str
    dtype: torch.dtype | None = None

    def shape(self, result: torch.Tensor) -> tuple[int, ...]:
        first, *others = result.shape or (1,)
        if self.name == "longer":
            return (first + 1, *others)
        if self.name == "shorter":
            return (max(first - 1, 0), *others)
        return tuple(result.shape)

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        transposed = self.name == "transposed"
        strides, step = [], 2 if self.name == "with gaps" else 1
        for size in shape if transposed else reversed(shape):
            strides.append(step)
            step *= max(size, 1)
        return tuple(strides if transposed else reversed(strides))


LAYOUTS = tuple(map(Kind, ("exact", "longer", "shorter", "with gaps", "transposed")))
KINDS = (*LAYOUTS, *(Kind(str(dtype).removeprefix("torch."), dtype) for dtype in DTYPES))


class Guarded:
    """A tensor of one kind for a result, with guard bytes before and behind it and between its elements."""

    def __init__(self, result: torch.Tensor, kind: Kind, device: str) -> None:
        dtype, shape = kind.dtype or result.dtype, kind.shape(result)
        elements = max(result.numel(), *itertools.accumulate(shape, lambda a, b: a * b, initial=1))
        # Enough that a kernel for the widest dtype stays inside, with gaps or without.
        size = 2 * _FRONT + 2 * torch.complex128.itemsize * (elements + 8)
        self._bytes = torch.full((size,), _GUARD, dtype=torch.uint8, device=device)
        self.tensor = torch.empty(0, dtype=dtype, device=device).set_(
            self._bytes.untyped_storage(), _FRONT // dtype.itemsize, shape, kind.strides(shape)
        )

    def written_outside(self) -> set[int]:
        """The bytes outside the tensor's elements that were written, counted from its start."""
        out = self.tensor
        places = torch.tensor(out.storage_offset())
        for size, stride in zip(out.shape, out.stride()):
            places = places.unsqueeze(-1) + torch.arange(size) * stride
        own = places.flatten().unsqueeze(-1) * out.dtype.itemsize + torch.arange(out.dtype.itemsize)
        written = self._bytes.cpu() != _GUARD
        written[own[own < written.numel()]] = False
        return set((written.nonzero().flatten() - _FRONT).tolist())


@dataclass(frozen=True)
class Call:
    """Arguments of an overload, without out=."""

    name: str
    form: str  # the overload whose arguments these are
    args: list
    kwargs: dict

    def __str__(self) -> str:
        shown = [
            f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
            if isinstance(value, torch.Tensor)
            else value
            for value in (*self.args, *self.kwargs.values())
        ]
        return f"{self.name}({', '.join(map(str, shown))})"[:200]


def names() -> list[str]:
    """Every overload of aten with out= arguments that are single tensors."""
    found = []
    for schema in torch._C._jit_get_all_schemas():
        outs = [argument for argument in schema.arguments if argument.is_out]
        if schema.name.startswith("aten::") and outs and all(str(each.type) == "Tensor" for each in outs):
            found.append(f"{schema.name.removeprefix('aten::')}.{schema.overload_name}".removesuffix("."))
    return sorted(set(found))


def calls(full: bool) -> Iterator[Call]:
    """Calls of overloads with out=, each with the recorded arguments of its first functional form. Without
    `full`, arguments come from some operators of the database in float32.
    """
    if full:
        recorded = own_samples.recorded_calls(operators.OPS, _RECORDED_DTYPES, _CALLS)
    else:
        recorded = own_samples.recorded_calls(operators.OPS[::_EVERY], _RECORDED_DTYPES[:1], 1)
    for name in names():
        if name in _OWN:
            args, kwargs = _OWN[name]
            yield Call(name, name, list(args), kwargs)
        for form in own_samples.related(name):
            found = [make() for make in own_samples.OWN.get(form, [])] + recorded.get(form, [])
            for args, kwargs in found:
                yield Call(name, form, list(args), dict(kwargs))
                images = any(isinstance(value, torch.Tensor) and _is_image(value) for value in args)
                if images and name not in _WRONG_FOR_CHANNELS_LAST:
                    yield Call(name, form, [_channels_last(value) for value in args], dict(kwargs))
            if found:
                break


def _is_image(tensor: torch.Tensor) -> bool:
    return (
        tensor.dim() == 4 and tensor.layout is torch.strided and tensor.is_contiguous() and tensor.numel() > 1
    )


def _channels_last(value: object) -> object:
    if isinstance(value, torch.Tensor) and _is_image(value):
        return value.to(memory_format=torch.channels_last)
    return value


def judge(call: Call, kinds: tuple[Kind, ...], device: str) -> Iterator[str]:
    """Calls with tensors of each kind as out= on the CPU and on `device`; yields the differences, and
    the bytes that were written outside of them.
    """
    reference = outcome_of(lambda: _results(call))
    if reference.error is not None or not reference.value:
        return
    results = reference.value
    outs = own_samples.outs_of(call.name)
    plain = all(result.layout is torch.strided and result.numel() <= _MOST_ELEMENTS for result in results)
    if len(results) != len(outs) or not plain:
        return
    exact = LAYOUTS[0]
    for kind in kinds:
        for changed in range(len(outs)) if kind is not exact else (0,):
            if kind.dtype is results[changed].dtype or (
                call.name in _ENDS_THE_PROCESS_ON_CPU and kind.dtype and not kind.dtype.is_floating_point
            ):
                continue
            if kind.dtype is not None and call.name in _UNCHECKED_ON_CPU:
                continue
            kinds_of = [kind if i == changed else exact for i in range(len(outs))]
            judged = f"{call} with {outs[changed]}: {kind.name}"
            try:
                _judge(call, outs, results, kinds_of, device)
            except Mismatch as mismatch:
                yield f"{judged}: {mismatch}"


def _results(call: Call) -> list[torch.Tensor]:
    args, kwargs = to_device("cpu", call.args, call.kwargs)
    if call.form != call.name:
        return tensors_in([own_samples.overload(call.form)(*args, **kwargs)])
    integral = ("searchsorted.Scalar_out", "randperm.generator_out")
    dtypes = {"indices": torch.int64, "out": torch.int64 if call.name in integral else _dtype_of(args)}
    empty = {name: torch.empty(0, dtype=dtypes.get(name)) for name in own_samples.outs_of(call.name)}
    return tensors_in([own_samples.overload(call.name)(*args, **kwargs, **empty)])


def _dtype_of(args: tuple) -> torch.dtype | None:
    return next((tensor.dtype for tensor in tensors_in(args)), None)


def _judge(call: Call, outs: list[str], results: list[torch.Tensor], kinds: list[Kind], device: str) -> None:
    here = [Guarded(result, kind, "cpu") for result, kind in zip(results, kinds, strict=True)]
    there = [Guarded(result, kind, device) for result, kind in zip(results, kinds, strict=True)]
    expected, actual = _run(call, outs, here, "cpu"), _run(call, outs, there, device)
    for ours, theirs in zip(there, here):
        # Some operators of torch use out= as memory for a larger intermediate result.
        if outside := sorted(ours.written_outside() - theirs.written_outside()):
            where = f"{outside[0]} to {outside[-1]}"
            raise Mismatch(f"{len(outside)} bytes outside out= were written: {where} from its start")
    if expected.error is not None or actual.error is not None:
        open_here = call.name.startswith(_REFUSED_BY_THE_CPU if actual.error is None else _REFUSED_ON_DEVICES)
        differ = (expected.error is None) != (actual.error is None)
        if differ and not open_here and "not implemented for" not in str(actual.error):
            raise Mismatch(f"the cpu: {_brief(expected)}; {device}: {_brief(actual)}")
        return
    for theirs, ours, result, kind in zip(here, there, results, kinds):
        if call.name.startswith(_SHAPES_ARE_OPEN):
            continue
        shape_only = call.name.startswith(_VALUES_ARE_OPEN)
        try:
            _require_same(theirs.tensor, ours.tensor, result, device, values=not shape_only)
        except FarApart:
            # Some CPU kernels write to out= as if it were contiguous.
            if kind.dtype is not None:
                raise
            _require_same(result.expand_as(theirs.tensor), ours.tensor, result, device, values=True)


def _require_same(
    expected: torch.Tensor, actual: torch.Tensor, result: torch.Tensor, device: str, *, values: bool
) -> None:
    tolerance = DEFAULT
    if torch.float16 in (expected.dtype, result.dtype):
        tolerance = Tolerance(rtol=2e-2, atol=1e-3)  # some devices compute in the dtype of out=
    elif expected.dtype is not result.dtype:
        tolerance = Tolerance(*default_tolerances(result.dtype))
    require_same(expected, actual, device, values=values, tolerance=tolerance, path="out")


def _run(call: Call, outs: list[str], guarded: list[Guarded], device: str) -> Outcome:
    args, kwargs = to_device(device, call.args, call.kwargs)
    given = {name: each.tensor for name, each in zip(outs, guarded, strict=True)}
    return outcome_of(lambda: own_samples.overload(call.name)(*args, **kwargs, **given))


def _brief(outcome: Outcome) -> str:
    return "accepted" if outcome.error is None else f"refused: {str(outcome.error).splitlines()[0][:120]}"
