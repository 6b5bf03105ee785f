# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Zero tensors, conjugated views and negated views as operands give the CPU's results with every provider.

Such tensors have no memory, or memory that does not hold their values. torch's dispatcher gives most
operators ordinary tensors instead. The operators that it lists as fall-through get them as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad

from tests.conformance import operators, variants
from tests.conformance.comparison import Mismatch, outcome_of, require_same_outcome
from tests.conformance.decompositions import compare_invariants
from tests.conformance.tolerances import tolerance_of
from tests.conformance.transfer import tensors_in, to_device
from tests.harness.device import host_can_address_device_memory

_KEYS = {"zero": "ZeroTensor", "conj": "Conjugate", "neg": "Negative"}
_ORDERS = [("mudnn",), ("ported",), ("host",), ("host-copy",)]
_SAMPLED_EVERY = 5
# Their result has no values, or is an attribute of the operand.
_WITHOUT_VALUES = ("empty", "resize_", "set_", "stride", "size", "is_complex", "is_floating_point")


def _falls_through(key: str) -> set[str]:
    """The overloads, as aten::add.Tensor, that the dispatcher calls without handling tensors of this key."""
    found = set()
    for name in torch._C._dispatch_get_all_op_names():
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
            line = re.search(rf"^{key}: (.*)$", torch._C._dispatch_dump(name), re.MULTILINE)
            if line is None or "fallthrough" in line[1]:
                found.add(name)
    return found


def _overload(name: str) -> Any:
    namespace, _, rest = name.partition("::")
    packet, _, form = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), form or "default")


def _takes_tensors(name: str) -> bool:
    return any("Tensor" in str(argument.type) for argument in _overload(name)._schema.arguments)


class _Makes:
    """Tensors of one dtype, different ones at each call."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._generator = torch.Generator().manual_seed(0)
        self._dtype = dtype

    def __call__(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self._generator, dtype=self._dtype)


_COUNTS = torch.tensor([1, 2, 1])
# Overload -> its arguments, and a dict of those that have no position. Each tensor is replaced in turn.
_ARGUMENTS: dict[str, Callable[[_Makes], list]] = {
    "dot": lambda t: [t(3), t(3)],
    "vdot": lambda t: [t(3), t(3)],
    "mm": lambda t: [t(2, 3), t(3, 4)],
    "bmm": lambda t: [t(2, 2, 3), t(2, 3, 4)],
    "addmm": lambda t: [t(2, 4), t(2, 3), t(3, 4)],
    "addmm_": lambda t: [t(2, 4), t(2, 3), t(3, 4)],
    "baddbmm": lambda t: [t(2, 2, 4), t(2, 2, 3), t(2, 3, 4)],
    "baddbmm_": lambda t: [t(2, 2, 4), t(2, 2, 3), t(2, 3, 4)],
    "linalg_svd": lambda t: [t(3, 2)],
    "linalg_solve_triangular": lambda t: [t(3, 3) + 3 * torch.eye(3), t(3, 2), {"upper": True}],
    "repeat_interleave.Tensor": lambda t: [_COUNTS],
    "repeat_interleave.self_Tensor": lambda t: [t(3), _COUNTS],
    "repeat_interleave.self_int": lambda t: [t(3), 2],
    "add.Scalar": lambda t: [t(2, 3), 2],
    "mul.Scalar": lambda t: [t(2, 3), 2],
    "copy_": lambda t: [t(2, 3), t(2, 3)],
    "set_.source_Tensor": lambda t: [t(2, 3), t(2, 3)],
    "set_": lambda t: [t(2, 3)],
    "neg_": lambda t: [t(2, 3)],
    "zeros_like": lambda t: [t(2, 3)],
    "full_like": lambda t: [t(2, 3), 2],
    "view_as_real": lambda t: [t(2, 3)],
    "real": lambda t: [t(2, 3)],
    "imag": lambda t: [t(2, 3)],
    "view": lambda t: [t(2, 3), [3, 2]],
    "_unsafe_view": lambda t: [t(2, 3), [3, 2]],
    "reshape": lambda t: [t(2, 3), [3, 2]],
    "as_strided": lambda t: [t(2, 3), [3, 2], [1, 3]],
    "as_strided_": lambda t: [t(2, 3), [3, 2], [1, 3]],
    "resize_": lambda t: [t(2, 3), [2, 2]],
    "unfold": lambda t: [t(2, 3), 1, 2, 1],
    "expand": lambda t: [t(1, 3), [2, 3]],
    "expand_as": lambda t: [t(1, 3), t(2, 3)],
    "view_as": lambda t: [t(2, 3), t(3, 2)],
    "permute": lambda t: [t(2, 3), [1, 0]],
    "transpose.int": lambda t: [t(2, 3), 0, 1],
    "transpose_": lambda t: [t(2, 3), 0, 1],
    "swapaxes": lambda t: [t(2, 3), 0, 1],
    "swapdims": lambda t: [t(2, 3), 0, 1],
    "movedim.int": lambda t: [t(2, 3), 0, 1],
    "movedim.intlist": lambda t: [t(2, 3), [0], [1]],
    "unflatten.int": lambda t: [t(2, 4), 1, [2, 2]],
    "diagonal": lambda t: [t(3, 3)],
    "select.int": lambda t: [t(2, 3), 1, 1],
    "narrow": lambda t: [t(2, 3), 1, 1, 2],
    "squeeze": lambda t: [t(1, 3)],
    "squeeze_": lambda t: [t(1, 3)],
    "unsqueeze": lambda t: [t(3), 0],
    "unsqueeze_": lambda t: [t(3), 0],
    "unbind.int": lambda t: [t(2, 3)],
    "chunk": lambda t: [t(4, 3), 2],
    "split.Tensor": lambda t: [t(4, 3), 2],
    "split_with_sizes": lambda t: [t(4, 3), [1, 3]],
    "size.int": lambda t: [t(2, 3), 1],
    "stride.int": lambda t: [t(2, 3), 1],
    "requires_grad_": lambda t: [t(2, 3), False],
    "_new_zeros_with_same_feature_meta": lambda t: [t(2, 3), t(2, 3)],
    "_has_same_storage_numel": lambda t: [t(2, 3), t(2, 3)],
    **{
        f"{a}split.{b}": (lambda t, b=b: [t(2, 4, 4), 2 if b == "int" else [1]])
        for a in "hvd"
        for b in ("int", "array")
    },
    **{
        name: lambda t: [t(3, 3)]
        for name in (
            *(
                "t",
                "t_",
                "alias",
                "detach",
                "detach_",
                "clone",
                "empty_like",
                "conj",
                "_conj",
                "_conj_physical",
            ),
            *(
                "conj_physical",
                "conj_physical_",
                "resolve_conj",
                "resolve_neg",
                "is_complex",
                "is_floating_point",
            ),
        )
    },
}
_ARGUMENTS["prims::clone"] = _ARGUMENTS["clone"]


def _arguments(name: str, dtype: torch.dtype) -> list:
    """Those of the functional form, preceded by its result if the overload has an out= argument."""
    functional = name.removesuffix(".out")
    args = _ARGUMENTS[functional.removeprefix("aten::")](_Makes(dtype))
    return [_call(functional, args), *args] if name.endswith(".out") else args


def _call(name: str, args: list) -> Any:
    kwargs = args[-1] if isinstance(args[-1], dict) else {}
    positional = [value for value in args if not isinstance(value, dict)]
    if name.endswith(".out"):
        kwargs = {**kwargs, "out": positional.pop(0)}
    return _overload(name)(*positional, **kwargs)


def _operators(kind: str) -> list[str]:
    """Fall-through overloads of tensors, except those with several outputs, a storage or named dimensions."""
    names = sorted(_falls_through(_KEYS[kind]))
    left_out = (".U", "source_Storage_storage_offset", "empty.out", ".Dimname")  # the last: torch before 2.12
    if kind == "neg":
        left_out += ("repeat_interleave.Tensor", "repeat_interleave.self_Tensor")  # wrong on the CPU
    return [name for name in names if _takes_tensors(name) and not name.endswith(left_out)]


def _replaced(args: list, kind: str, place: int, device: str) -> list:
    made = []
    for index, value in enumerate(args):
        if not isinstance(value, torch.Tensor):
            made.append(value)
            continue
        if index != place:
            made.append(value.to(device, copy=True))
        elif kind == "zero":
            made.append(torch._efficientzerotensor(value.shape, dtype=value.dtype, device=device))
        elif kind == "neg":
            made.append(torch._neg_view(value.neg().to(device)))
        else:
            made.append(value.to(device, copy=True).conj())
    return made


def _stored(value: Any) -> Any:
    """Ordinary tensors in place of zero tensors, which no comparison can read."""
    if isinstance(value, torch.Tensor):
        return value + 0 if value._is_zerotensor() else value
    return type(value)(_stored(each) for each in value) if isinstance(value, (list, tuple)) else value


def _calls(kind: str) -> Iterator[tuple[str, torch.dtype, int]]:
    for name in _operators(kind):
        for dtype in (torch.complex64,) if kind == "conj" else (torch.float32, torch.complex64):
            for place, value in enumerate(_arguments(name, dtype)):
                if isinstance(value, torch.Tensor) and (value.dtype is dtype or kind != "conj"):
                    yield name, dtype, place


def _order(*providers: str) -> Any:
    return torch.musa.ops.prefer("*", *providers, "host" if host_can_address_device_memory() else "host-copy")


def _judge(name: str, dtype: torch.dtype, kind: str, place: int, device: str) -> None:
    args = _arguments(name, dtype)
    expected = outcome_of(lambda: _stored(_call(name, _replaced(args, kind, place, "cpu"))))
    actual = outcome_of(lambda: _stored(_call(name, _replaced(args, kind, place, device))))
    values = not name.removeprefix("aten::").startswith(_WITHOUT_VALUES)
    compare_invariants(name, expected, actual, device)
    require_same_outcome(expected, actual, device, values=values)


@pytest.mark.parametrize("kind", list(_KEYS))
@pytest.mark.parametrize("order", _ORDERS, ids=lambda order: order[0])
def test_operators_that_get_lazy_operands(order: tuple, kind: str, device: str) -> None:
    if order == ("host",) and not host_can_address_device_memory():
        order = ("host-copy",)
    failures, judged = [], 0
    with _order(*order):
        for name, dtype, place in _calls(kind):
            judged += 1
            try:
                _judge(name, dtype, kind, place, device)
            except Mismatch as error:
                failures.append(f"{name}, argument {place} of {dtype}: {str(error)[:300]}")
    assert not failures, "\n".join(failures)
    assert judged > 60


def test_negated_counts_of_repetitions(device: str) -> None:
    # torch's CPU kernel refuses every negated view.
    counts = torch._neg_view(torch.tensor([-1, -2, -1], device=device))
    with _order("ported"):
        assert torch.repeat_interleave(counts).tolist() == [0, 1, 1, 2]


@pytest.mark.once
@pytest.mark.parametrize("kind", list(_KEYS))
def test_every_fall_through_operator_has_arguments(kind: str) -> None:
    missing = [
        name
        for name in _operators(kind)
        if name.removeprefix("aten::").removesuffix(".out") not in _ARGUMENTS
    ]
    assert not missing, (
        f"The dispatcher passes {kind} tensors to {missing}. Fix: add arguments to _ARGUMENTS."
    )
    names = _falls_through(_KEYS[kind])
    assert {"zero": "aten::dot", "conj": "aten::mm", "neg": "aten::neg_"}[kind] in names


@pytest.mark.parametrize(
    "product",
    [
        torch.dot,
        torch.vdot,
        torch.inner,
        torch.matmul,
        torch.nn.functional.linear,
        lambda a, b: torch.tensordot(a, b, 1),
    ],
    ids=["dot", "vdot", "inner", "matmul", "linear", "tensordot"],
)
@pytest.mark.parametrize("order", _ORDERS, ids=lambda order: order[0])
def test_derivative_of_a_product_with_a_constant(order: tuple, product: Callable, device: str) -> None:
    def function(a: torch.Tensor) -> torch.Tensor:
        return product(a * 2, torch.sin(w))

    w = torch.tensor([1.0, 2.0, 3.0])
    expected = torch.func.jacfwd(function)(w)
    w = w.to(device)
    with _order(*order if order != ("host",) or host_can_address_device_memory() else ("host-copy",)):
        assert torch.allclose(torch.func.jacfwd(function)(w).cpu(), expected)


def test_a_product_with_zeros_refuses_what_other_products_refuse(device: str) -> None:
    zeros = torch._efficientzerotensor(3, device=device)
    for other in (
        torch.ones(4, device=device),
        torch.ones(3, 1, device=device),
        torch.ones(3).double().to(device),
    ):
        for product in (torch.dot, torch.vdot):
            with pytest.raises(
                RuntimeError, match=r"inconsistent tensor size|1D tensors expected|same dtype"
            ):
                product(zeros, other)
    assert torch.dot(zeros, zeros)._is_zerotensor()


@cache
def _differentiable() -> list[Any]:
    return [
        op
        for op in operators.OPS
        if op.supports_forward_ad
        and op.supports_autograd
        and op.full_name not in operators.RANDOM | operators.UNINITIALISED
        and op.supports_dtype(torch.float32, "cpu")
        and torch.float32 in op.supported_backward_dtypes("cpu")
    ]


class _Dual:
    """Detached arguments, of which the tensor at one place has a tangent of ones."""

    def __init__(self, place: int) -> None:
        self._left = place

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            value = value.detach()
            self._left -= 1
            return forward_ad.make_dual(value, torch.ones_like(value)) if self._left == -1 else value
        if isinstance(value, dict):
            return {key: self(each) for key, each in value.items()}
        return type(value)(self(each) for each in value) if type(value) in (list, tuple) else value


def _derivative(op: Any, sample: Any, place: int, device: str) -> Any:
    """The result and its derivative along ones in one tensor of the arguments; the others are constants."""
    arguments = to_device(device, sample.input, list(sample.args), dict(sample.kwargs))
    with forward_ad.dual_level(), torch.device(device):
        dual = _Dual(place)
        first, args, kwargs = dual(arguments[0]), dual(arguments[1]), dual(arguments[2])
        result = sample.output_process_fn_grad(op(first, *args, **kwargs))
        parts = [forward_ad.unpack_dual(each) for each in tensors_in(result)]
        return [(part.primal, None if part.tangent is None else _stored(part.tangent)) for part in parts]


def _places(sample: Any) -> list[int]:
    tensors = tensors_in((sample.input, list(sample.args), dict(sample.kwargs)))
    return [place for place, tensor in enumerate(tensors) if tensor.is_floating_point()]


def test_derivatives_along_one_argument(device: str, full: bool) -> None:
    failures, judged = [], 0
    for op in _differentiable() if full else _differentiable()[::_SAMPLED_EVERY]:
        tolerance = tolerance_of(op, torch.float32, gradients=True)
        for sample in operators.Case(op, torch.float32).samples(full):
            for place in _places(sample):
                expected = outcome_of(partial(_derivative, op, sample, place, "cpu"))
                if expected.error is not None:
                    continue
                judged += 1
                actual = outcome_of(partial(_derivative, op, sample, place, device))
                precise = partial(_derivative, op, sample.transform(variants.doubled), place, "cpu")
                try:
                    variants.require_same_outcome_or_near(
                        op, expected, actual, precise, device, tolerance=tolerance
                    )
                except Mismatch as error:
                    failures.append(f"{op.full_name}, tensor {place}: {str(error)[:300]}")
    assert not failures, "\n".join(failures)
    assert judged > 100
