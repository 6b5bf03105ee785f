# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes to tensors with gaps between their elements, beside a stream that writes the gaps.

`python -m tests.musa_runtime.unowned_bytes [STEP]` makes every STEP-th copy and call, and prints those that
were wrong or that overwrote the other stream's bytes.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator

import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.harness.neighbours import Neighbour

SIZE = 4096  # elements of a storage

# Views of a storage of SIZE elements, in which gaps of different kinds are left.
TARGETS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "column": lambda x: x.view(64, 64)[:, 3],
    "columns": lambda x: x.view(64, 64)[:, 5:9],
    "every third": lambda x: x[1::3],
    "every second of two": lambda x: x.view(64, 64)[::2, 1::2],
    "transposed": lambda x: x.view(64, 64)[:, :50].t(),
    "every second of three": lambda x: x.view(16, 16, 16)[::2, ::2, ::2],
    "permuted": lambda x: x.view(16, 16, 16)[::2, :, 3:].permute(2, 0, 1),
    "many copies": lambda x: x.view(4, 4, 4, 8, 8)[::3, 1:, ::2, 1:, ::2].permute(2, 4, 0, 3, 1),
    "diagonal": lambda x: x.view(64, 64).diagonal(1),
    "as_strided": lambda x: x.as_strided((10, 20), (150, 3), 7),
    "one element": lambda x: x[77],
    "channels last": lambda x: x.view(4, 16, 8, 8).permute(0, 3, 1, 2)[:, :5],
    "dense": lambda x: x[64:128].view(8, 8),
}

# Further views, of a storage of complex numbers.
COMPLEX_TARGETS = {
    "real part": lambda x: x.view(64, 64).real[:, ::2],
    "imaginary part": lambda x: x.imag[3:],
    "conjugated": lambda x: x.view(64, 64)[:, ::2].conj(),
    "negated": lambda x: x.conj().imag[::2],
}

DTYPES = (
    torch.float32, torch.uint8, torch.bool, torch.bfloat16, torch.float64, torch.complex64, torch.int64,
    torch.complex128, torch.complex32, torch.float8_e5m2,
)  # fmt: skip

# The source of a copy into a target, made from its values as a contiguous CPU tensor of the target's dtype.
SOURCES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cpu": lambda x: x,
    "pinned": lambda x: x.pin_memory(),
    "cpu double": lambda x: x.to(torch.complex128 if x.is_complex() else torch.float64),
    "cpu strided": lambda x: torch.stack([x, x], -1)[..., 1],
    "cpu expanded": lambda x: x.flatten()[:1].view([1] * x.dim()).expand(x.shape),
    "device": lambda x: x.to("musa"),
    "device strided": lambda x: torch.stack([x, x], 0).to("musa").transpose(0, -1)[..., 0].reshape(x.shape),
    "device float": lambda x: x.to("musa", torch.complex64 if x.is_complex() else torch.float32),
    "device expanded": lambda x: x.flatten()[:1].to("musa").view([1] * x.dim()).expand(x.shape),
    "device negated": lambda x: torch._neg_view(x.to("musa")) if x.dtype is torch.float32 else x.to("musa"),
    "other device": lambda x: x.to("musa:1"),
    "other device double": lambda x: x.to("musa:1", torch.complex128 if x.is_complex() else torch.float64),
}


def values_of(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    numbers = (
        torch.arange(shape.numel(), dtype=torch.float64).remainder(2 if dtype is torch.bool else 100) + 1
    )
    if dtype.is_complex:
        return torch.complex(numbers, -numbers).to(dtype).view(shape)
    return numbers.to(dtype).view(shape)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)


def copies() -> Iterator[tuple[str, Callable[[], str]]]:
    """Names of all copies, each with a function that copies and returns a description of the fault, or ""."""
    for dtype in DTYPES:
        targets = {**TARGETS, **(COMPLEX_TARGETS if dtype.is_complex else {})}
        for (target, view), (source, form), non_blocking in itertools.product(
            targets.items(), SOURCES.items(), (False, True)
        ):
            if dtype is torch.complex32 and target in ("real part", "imaginary part", "negated"):
                continue  # torch has no such views of it on the CPU
            name = f"{source} -> {target}, {dtype}{', non_blocking' * non_blocking}"
            yield name, lambda v=view, f=form, d=dtype, n=non_blocking: copied(v, f, d, n)


def copied(view, form, dtype: torch.dtype, non_blocking: bool) -> str:
    storage = torch.zeros(SIZE, dtype=dtype, device="musa")
    target = view(storage)
    source = form(values_of(target.shape, target.dtype))
    expected = torch.empty(target.shape, dtype=target.dtype).copy_(source)
    torch.musa.synchronize()
    neighbour = Neighbour(target)
    with neighbour.beside():
        target.copy_(source, non_blocking=non_blocking)
    return wrong(neighbour, target, expected)


def wrong(neighbour: Neighbour, target: torch.Tensor, expected: torch.Tensor | None) -> str:
    lost = neighbour.lost_bytes()
    if lost:
        return f"{lost} bytes of the other stream are lost"
    if expected is not None and not torch.equal(bits(target.cpu()), bits(expected)):
        return "wrong values"
    return ""


# Operators of torch's database without a result that can be compared.
RANDOM = (
    "bernoulli",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "normal",
    "uniform",
    "rrelu",
    "empty",
    "resize",
    "nn.functional.gelu",  # torch's CPU kernel ignores the strides of out=
)


def calls() -> Iterator[tuple[str, Callable[[], str]]]:
    """Like copies(): in-place and out= forms of the operators of torch's database; the target has gaps."""
    for op in op_db:
        if op.name.startswith("jiterator"):
            continue
        if op.inplace_variant is not None:
            yield f"{op.full_name} in place", lambda o=op: in_place(o)
        if op.supports_out:
            yield f"{op.full_name} out=", lambda o=op: with_out(o)


def with_gaps(tensor: torch.Tensor, device: str = "musa") -> torch.Tensor:
    """A tensor of equal values, of whose storage it uses every third element."""
    storage = torch.zeros(3 * tensor.numel() + 3, dtype=tensor.dtype, device=device)
    strides = [3 * stride for stride in tensor.contiguous().stride()]
    return storage.as_strided(tensor.shape, strides, 1).copy_(tensor)


def first_sample(op):
    dtypes = [d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in op.dtypes]
    return next(iter(op.sample_inputs("cpu", dtypes[0])), None) if dtypes else None


def moved(value):
    return torch.utils._pytree.tree_map(lambda v: v.to("musa") if isinstance(v, torch.Tensor) else v, value)


def compared(op, neighbour, target, expected) -> str:
    said = wrong(neighbour, target, None)
    if said or op.full_name.startswith(RANDOM) or "dropout" in op.name or expected.dtype != target.dtype:
        return said
    close = torch.allclose(target.cpu(), expected, rtol=1e-2, atol=1e-2, equal_nan=True)
    return "" if close else "wrong values"


def in_place(op) -> str:
    sample = first_sample(op)
    if sample is None or not isinstance(sample.input, torch.Tensor) or sample.input.numel() < 2:
        return ""
    expected = sample.input.detach().clone()
    try:
        op.inplace_variant(expected, *sample.args, **sample.kwargs)
    except RuntimeError:
        return ""  # the sample is for the functional form
    target, args, kwargs = with_gaps(sample.input.detach()), moved(sample.args), moved(sample.kwargs)
    torch.musa.synchronize()
    neighbour = Neighbour(target)
    try:
        with neighbour.beside():
            op.inplace_variant(target, *args, **kwargs)
    except RuntimeError:
        return ""  # the operator refuses such a target
    if target.shape != expected.shape or target.untyped_storage().nbytes() < 3 * expected.nbytes:
        return ""  # changed metadata only, or got other memory
    return compared(op, neighbour, target, expected)


def with_out(op) -> str:
    sample = first_sample(op)
    if sample is None:
        return ""
    with torch.no_grad():
        expected = op(sample.input, *sample.args, **sample.kwargs)
    if not isinstance(expected, torch.Tensor) or expected.numel() < 2:
        return ""
    given, args, kwargs = moved(sample.input), moved(sample.args), moved(sample.kwargs)
    target = with_gaps(torch.zeros_like(expected))
    torch.musa.synchronize()
    neighbour = Neighbour(target)
    try:
        with torch.no_grad(), neighbour.beside():
            op(given, *args, **kwargs, out=target)
    except RuntimeError:
        return ""  # the sample's own arguments name another device, or the operator refuses such a target
    return compared(op, neighbour, target, expected)


def failures(cases: Iterable[tuple[str, Callable[[], str]]]) -> Iterator[str]:
    """A line for each case that was wrong, then the number of cases."""
    count = 0
    for name, case in cases:
        count += 1
        said = case()
        if said:
            yield f"{name}: {said}"
    yield f"{count} cases"


def main() -> None:
    warnings.simplefilter("ignore")
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for cases in (copies(), calls()):
        for line in failures(itertools.islice(cases, 0, None, step)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
