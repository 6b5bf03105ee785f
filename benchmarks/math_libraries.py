# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Math libraries of the SDK against torch's CPU operators on the same data."""

import ctypes
import warnings
from collections.abc import Callable, Iterator
from ctypes import byref, c_float, c_int, c_int64, c_size_t, c_ulonglong, c_void_p
from pathlib import Path

import torch

from musa_runtime import config

from .measure import Effort, Row, interleaved

BAR = 1.2
N, T = 111, 112  # operation constants of muBLAS and muSPARSE
C2C, FORWARD = 0x29, -1
PSEUDO_DEFAULT, PHILOX = 100, 161
R_32F, INDEX_32I = 0, 2


def library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(config.musa_home()) / "lib" / f"lib{name}.so"))


def ok(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"a call of the library returned status {status}")


def address(tensor: torch.Tensor) -> c_void_p:
    return c_void_p(tensor.data_ptr())


PAGE = 4096


def twins(device: torch.device, *tensors: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns each tensor on the device, and on the host at the same offset within a page.

    A processor stalls if a load and an earlier store have the same offset in different pages: torch's
    matrix-vector product takes 71 or 97 microseconds, depending on the addresses of its operands.
    """
    pairs = []
    for tensor in tensors:
        here = tensor.clone().to(device)
        room = torch.empty(tensor.numel() + PAGE // tensor.element_size(), dtype=tensor.dtype)
        start = (here.data_ptr() - room.data_ptr()) % PAGE // tensor.element_size()
        pairs.append((here, room[start : start + tensor.numel()].view(tensor.shape).copy_(tensor)))
    return pairs


class Case:
    """A library call and the equivalent operator. Both write to preallocated outputs."""

    def __init__(
        self,
        name: str,
        run: Callable[[], None],
        baseline: Callable[[], None],
        outputs: tuple[torch.Tensor, torch.Tensor] | None,
        keep: object,
    ) -> None:
        self.name, self.run, self.baseline, self.outputs = name, run, baseline, outputs
        self.keep = keep  # tensors whose addresses `run` uses


def sgemm(device: torch.device, size: int) -> Case:
    blas, handle = library("mublas"), c_void_p()
    ok(blas.mublasCreate(byref(handle)))
    (da, a), (db, b), (dc, c) = twins(device, *(torch.randn(size, size) for _ in range(3)))
    one, zero = c_float(1), c_float(0)
    # The column-major product of transposed matrices is the row-major product of b and a.
    arguments = (handle, N, N, size, size, size, byref(one), address(db), size, address(da), size)
    arguments = (*arguments, byref(zero), address(dc), size)
    return Case(
        f"mublasSgemm {size}",
        lambda: ok(blas.mublasSgemm(*arguments)),
        lambda: torch.mm(a, b, out=c),
        (dc, c),
        (da, db, one, zero),
    )


def sgemv(device: torch.device, size: int, transposed: bool) -> Case:
    blas, handle = library("mublas"), c_void_p()
    ok(blas.mublasCreate(byref(handle)))
    operands = torch.randn(size, size), torch.randn(size), torch.zeros(size)
    (da, a), (dx, x), (dy, y) = twins(device, *operands)
    one, zero = c_float(1), c_float(0)
    operation = T if transposed else N
    arguments = (handle, operation, size, size, byref(one), address(da), size, address(dx), 1)
    arguments = (*arguments, byref(zero), address(dy), 1)
    matrix = a if transposed else a.t()  # row-major here, column-major for the library
    return Case(
        f"mublasSgemv {size}{', transposed' if transposed else ''}",
        lambda: ok(blas.mublasSgemv(*arguments)),
        lambda: torch.mv(matrix, x, out=y),
        (dy, y),
        (da, dx, one, zero),
    )


def fft(device: torch.device, batch: int, size: int) -> Case:
    fft, plan = library("mufft"), c_int()
    ok(fft.mufftPlan1d(byref(plan), size, C2C, batch))
    signal = torch.randn(batch, size, dtype=torch.complex64)
    (dx, x), (dy, y) = twins(device, signal, torch.zeros_like(signal))
    arguments = (plan, address(dx), address(dy), FORWARD)
    return Case(
        f"mufftExecC2C {batch} x {size}",
        lambda: ok(fft.mufftExecC2C(*arguments)),
        lambda: torch.fft.fft(x, out=y),
        (dy, y),
        (dx,),
    )


def uniform(device: torch.device, count: int) -> Case:
    rand, generator = library("murand"), c_void_p()
    ok(rand.murandCreateGenerator(byref(generator), PSEUDO_DEFAULT))
    ok(rand.murandSetPseudoRandomGeneratorSeed(generator, c_ulonglong(1)))
    ((output, numbers),) = twins(device, torch.zeros(count))
    arguments = (generator, address(output), c_size_t(count))
    return Case(
        f"murandGenerateUniform {count:.0e}",
        lambda: ok(rand.murandGenerateUniform(*arguments)),
        numbers.uniform_,
        None,  # another generator gives other numbers
        output,
    )


def spmv(device: torch.device, size: int, per_row: int) -> Case:
    sparse, handle = library("musparse"), c_void_p()
    ok(sparse.musparseCreate(byref(handle)))
    starts = torch.arange(0, (size + 1) * per_row, per_row, dtype=torch.int32)
    columns = torch.randint(0, size, (size, per_row), dtype=torch.int32).sort(1).values.flatten()
    values, x, y = torch.randn(size * per_row), torch.randn(size), torch.zeros(size)
    kept, (starts, columns, values, x, y) = zip(*twins(device, starts, columns, values, x, y), strict=True)
    matrix, of_x, of_y = c_void_p(), c_void_p(), c_void_p()
    shape = (c_int64(size), c_int64(size), c_int64(values.numel()))
    arrays = map(address, kept[:3])
    ok(sparse.musparseCreateCsr(byref(matrix), *shape, *arrays, INDEX_32I, INDEX_32I, 0, R_32F))
    ok(sparse.musparseCreateDnVec(byref(of_x), c_int64(size), address(kept[3]), R_32F))
    ok(sparse.musparseCreateDnVec(byref(of_y), c_int64(size), address(kept[4]), R_32F))
    one, zero = c_float(1), c_float(0)
    arguments = (handle, N, byref(one), matrix, of_x, byref(zero), of_y, R_32F, 0, None)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        csr = torch.sparse_csr_tensor(starts, columns, values, (size, size), check_invariants=False)
    return Case(
        f"musparseSpMV {size}, {per_row} a row",
        lambda: ok(sparse.musparseSpMV(*arguments)),
        lambda: torch.mv(csr, x, out=y),
        (kept[4], y),
        (kept, one, zero),
    )


def cases(device: torch.device, quick: bool) -> Iterator[Case]:
    torch.manual_seed(0)
    yield sgemm(device, 64 if quick else 512)
    yield sgemv(device, 64 if quick else 1024, transposed=False)
    yield sgemv(device, 64 if quick else 1024, transposed=True)
    yield fft(device, 4 if quick else 64, 1024)
    yield uniform(device, 1000 if quick else 1_000_000)
    yield spmv(device, 100 if quick else 20_000, 10 if quick else 50)


def measure(case: Case, device: torch.device, baseline: torch.device, effort: Effort) -> Row:
    case.run()
    case.baseline()
    torch.musa.synchronize()
    if case.outputs is not None:  # the time of a wrong result is meaningless
        torch.testing.assert_close(case.outputs[0].cpu(), case.outputs[1], rtol=1e-4, atol=1e-3)
    pair = interleaved(case.run, device, case.baseline, baseline, effort)
    return Row(
        "math libraries", case.name, pair.value * 1e6, pair.baseline * 1e6, "µs", BAR,
        ratio=pair.ratio, spread=pair.spread,
    )  # fmt: skip


def measure_all(device: torch.device, baseline: torch.device, effort: Effort, quick: bool) -> Iterator[Row]:
    for case in cases(device, quick):
        yield measure(case, device, baseline, effort)
