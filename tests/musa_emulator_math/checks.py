# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls of muBLAS, muFFT and muRAND against NumPy, and what checks of the other libraries share.

`CHECKS` holds every check by its name; run_checks.py imports the files that add to it and runs them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_double, c_float, c_int, c_longlong, c_size_t, c_void_p

import numpy as np

from tests.musa_emulator import sdk

CHECKS: dict[str, Callable[[], None]] = {}
N, T, C = 111, 112, 113
UPPER, LOWER, NON_UNIT, UNIT, LEFT, RIGHT = 121, 122, 131, 132, 141, 142
LETTERS = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
TOLERANCE = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 2e-5, np.dtype(np.complex64): 2e-5}


def library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(sdk.HOME / "lib" / f"lib{name}.so"))


rt, blas, fft, rand = (library(name) for name in ("musart", "mublas", "mufft", "murand"))


def ok(status: int, expected: int = 0) -> None:
    assert status == expected, f"status {status} instead of {expected}"


def same(got: np.ndarray, expected: np.ndarray) -> None:
    """Raises AssertionError where they differ by more than rounding, relative to the largest element."""
    assert got.shape == expected.shape and got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert np.isfinite(got).all(), "not finite"
    limit = TOLERANCE.get(got.dtype, 1e-12) * max(1.0, float(np.abs(expected).max(initial=0)))
    wide = np.complex128 if np.iscomplexobj(got) else np.float64
    error = float(np.abs(got.astype(wide) - expected.astype(wide)).max(initial=0))
    assert error <= limit, f"off by {error}, limit {limit}"


class Device:
    """An array in device memory, in the order of its elements in memory."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.pointer = c_void_p()
        ok(rt.musaMalloc(byref(self.pointer), c_size_t(max(values.nbytes, 1))))
        ok(rt.musaMemcpy(self.pointer, values.ctypes.data_as(c_void_p), c_size_t(values.nbytes), 1))

    def get(self) -> np.ndarray:
        ok(rt.musaStreamSynchronize(stream))
        got = np.empty_like(self.values)
        ok(rt.musaMemcpy(got.ctypes.data_as(c_void_p), self.pointer, c_size_t(got.nbytes), 2))
        return got


random = np.random.default_rng(7)
stream = c_void_p()
handle = c_void_p()


def numbers(dtype: type, *shape: int) -> np.ndarray:
    values = random.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def columns(dtype: type, rows: int, count: int, ld: int) -> np.ndarray:
    """Storage of a column-major matrix: element (i, j) is [j, i]."""
    assert ld >= rows
    return numbers(dtype, count, ld)


def of(storage: np.ndarray, rows: int) -> np.ndarray:
    return storage[..., :rows].swapaxes(-1, -2)


def op(a: np.ndarray, operation: int) -> np.ndarray:
    turned = a if operation == N else a.swapaxes(-1, -2)
    return turned.conj() if operation == C else turned


def scalar(dtype: type, value: complex) -> c_void_p:
    array = np.array([value]).astype(dtype)
    KEPT.append(array)
    return array.ctypes.data_as(c_void_p)


KEPT: list[np.ndarray] = []


def check(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(function: Callable[[], None]) -> Callable[[], None]:
        CHECKS[name] = function
        return function

    return register


def every_letter(name: str, letters: str = "SDCZ") -> Callable[[Callable], Callable]:
    def register(function: Callable) -> Callable:
        for letter in letters:
            CHECKS[name.replace("?", letter)] = lambda letter=letter: function(letter, LETTERS[letter])
        return function

    return register


def function(name: str) -> Callable:
    return getattr(blas, f"mublas{name}")


@every_letter("?axpy, also backwards")
def axpy(letter: str, dtype: type) -> None:
    for incx, incy in ((1, 1), (2, 3), (-2, 1), (1, -2)):
        x, y = numbers(dtype, 5 * abs(incx)), numbers(dtype, 5 * abs(incy))
        dx, dy = Device(x), Device(y)
        ok(function(f"{letter}axpy")(handle, 5, scalar(dtype, 2.5), dx.pointer, incx, dy.pointer, incy))
        expected = y.copy()
        wx = x[:: abs(incx)][:5][:: (1 if incx > 0 else -1)]
        part = expected[:: abs(incy)][:5][:: (1 if incy > 0 else -1)]
        part += (dtype(2.5) * wx).astype(dtype)
        same(dy.get(), expected)


@every_letter("?scal, ?copy, ?swap")
def scal(letter: str, dtype: type) -> None:
    x, y = numbers(dtype, 12), numbers(dtype, 6)
    dx, dy = Device(x), Device(y)
    ok(function(f"{letter}scal")(handle, 6, scalar(dtype, -3), dx.pointer, 2))
    x[::2] *= dtype(-3)
    same(dx.get(), x)
    ok(function(f"{letter}swap")(handle, 6, dx.pointer, 2, dy.pointer, 1))
    x[::2], y = y, x[::2].copy()
    same(dx.get(), x)
    same(dy.get(), y)
    ok(function(f"{letter}copy")(handle, 6, dy.pointer, -1, dx.pointer, 2))
    x[::2] = y[::-1]
    same(dx.get(), x)


@every_letter("dot products of ?, in both pointer modes")
def dot(letter: str, dtype: type) -> None:
    x, y = numbers(dtype, 40), numbers(dtype, 20)
    dx, dy = Device(x), Device(y)
    for kind in ("dot",) if letter in "SD" else ("dotu", "dotc"):
        wx = x[::2].conj() if kind == "dotc" else x[::2]
        expected = np.array([np.sum(wx.astype(np.complex128) * y)])
        expected = (expected if letter in "CZ" else expected.real).astype(dtype)
        result = np.zeros(1, dtype)
        ok(
            function(f"{letter}{kind}")(
                handle, 20, dx.pointer, 2, dy.pointer, 1, result.ctypes.data_as(c_void_p)
            )
        )
        same(result, expected)
        on_device = Device(np.zeros(1, dtype))
        ok(blas.mublasSetPointerMode(handle, 1))
        ok(function(f"{letter}{kind}")(handle, 20, dx.pointer, 2, dy.pointer, 1, on_device.pointer))
        ok(blas.mublasSetPointerMode(handle, 0))
        same(on_device.get(), expected)


@every_letter("norms and extremes of ?")
def norms(letter: str, dtype: type) -> None:
    x = numbers(dtype, 33)
    real = x.real.dtype.type
    prefix = {"S": "S", "D": "D", "C": "Sc", "Z": "Dz"}[letter]
    dx = Device(x)
    result = np.zeros(1, real)
    ok(function(f"{prefix}nrm2")(handle, 33, dx.pointer, 1, result.ctypes.data_as(c_void_p)))
    same(result, np.array([np.linalg.norm(x.astype(np.complex128))]).astype(real))
    ok(function(f"{prefix}asum")(handle, 33, dx.pointer, 1, result.ctypes.data_as(c_void_p)))
    sizes = np.abs(x.real) + np.abs(x.imag)
    same(result, np.array([sizes.sum()]).astype(real))
    index = c_int(-1)
    ok(function(f"I{letter.lower()}amax")(handle, 33, dx.pointer, 1, byref(index)))
    assert index.value == 1 + int(sizes.argmax()), index.value
    ok(function(f"I{letter.lower()}amin")(handle, 11, dx.pointer, 3, byref(index)))
    assert index.value == 1 + int(sizes[::3].argmin()), index.value
    large = Device(np.full(4, 1e30 if letter in "SC" else 1e200, dtype))
    ok(function(f"{prefix}nrm2")(handle, 4, large.pointer, 1, result.ctypes.data_as(c_void_p)))
    assert np.isclose(float(result[0]), 2e30 if letter in "SC" else 2e200)


@every_letter("?gemv and rank-one updates")
def gemv(letter: str, dtype: type) -> None:
    m, n, lda = 5, 3, 7
    for operation in (N, T, C):
        a = columns(dtype, m, n, lda)
        inner, outer = (n, m) if operation == N else (m, n)
        for incy, beta in ((1, 0.5), (-2, 0.5), (3, 0), (-1, 0)):
            x, y = numbers(dtype, 2 * inner), numbers(dtype, abs(incy) * outer)
            if beta == 0:
                y[:: abs(incy)] = np.nan  # is not read
            da, dx, dy = Device(a), Device(x), Device(y)
            inputs = (m, n, scalar(dtype, 1.5), da.pointer, lda, dx.pointer, -2, scalar(dtype, beta))
            ok(function(f"{letter}gemv")(handle, operation, *inputs, dy.pointer, incy))
            expected = y.copy()
            part = expected[:: abs(incy)][:: (1 if incy > 0 else -1)]
            kept = beta * part if beta != 0 else 0
            part[...] = (1.5 * (op(of(a, m), operation) @ x[::2][::-1]) + kept).astype(dtype)
            same(dy.get(), expected)
    for kind in ("ger",) if letter in "SD" else ("geru", "gerc"):
        a, x, y = columns(dtype, m, n, lda), numbers(dtype, m), numbers(dtype, n)
        da, dx, dy = Device(a), Device(x), Device(y)
        ok(
            function(f"{letter}{kind}")(
                handle, m, n, scalar(dtype, 2), dx.pointer, 1, dy.pointer, 1, da.pointer, lda
            )
        )
        expected = a.copy()
        of(expected, m)[...] += (2 * np.outer(x, y.conj() if kind == "gerc" else y)).astype(dtype)
        same(da.get(), expected)


def gemm_cases() -> list[tuple[int, int]]:
    return [(a, b) for a in (N, T, C) for b in (N, T, C)]


def stored(dtype: type, operation: int, rows: int, count: int, ld: int) -> tuple[np.ndarray, int]:
    kept_rows, kept_columns = (rows, count) if operation == N else (count, rows)
    return columns(dtype, kept_rows, kept_columns, ld), kept_rows


@every_letter("?gemm with every operation")
def gemm(letter: str, dtype: type) -> None:
    m, n, k, ld = 4, 5, 3, 6
    for ta, tb in gemm_cases():
        (a, ra), (b, rb), c = (
            stored(dtype, ta, m, k, ld),
            stored(dtype, tb, k, n, ld),
            columns(dtype, m, n, ld),
        )
        da, db, dc = Device(a), Device(b), Device(c)
        arguments = (
            m,
            n,
            k,
            scalar(dtype, 2),
            da.pointer,
            ld,
            db.pointer,
            ld,
            scalar(dtype, -1),
            dc.pointer,
            ld,
        )
        ok(function(f"{letter}gemm")(handle, ta, tb, *arguments))
        expected = c.copy()
        product = op(of(a, ra), ta) @ op(of(b, rb), tb)
        of(expected, m)[...] = (2 * product - of(c, m)).astype(dtype)
        same(dc.get(), expected)
    # What c holds does not matter where beta is 0.
    dc = Device(np.full((n, ld), np.nan, dtype))
    ok(
        function(f"{letter}gemm")(
            handle, N, N, m, n, 0, scalar(dtype, 1), None, ld, None, ld, scalar(dtype, 0), dc.pointer, ld
        )
    )
    assert (of(dc.get(), m) == 0).all()


def pointers(device: Device, stride: int, batch: int) -> Device:
    base, size = device.pointer.value, device.values.itemsize
    return Device(np.array([base + i * stride * size for i in range(batch)], np.uint64))


@every_letter("?gemm of batches")
def batches(letter: str, dtype: type) -> None:
    m, n, k, batch = 3, 4, 2, 3
    a, b, c = (numbers(dtype, batch, *shape) for shape in ((k, m), (n, k), (n, m)))
    expected = (a.swapaxes(1, 2) @ b.swapaxes(1, 2)).swapaxes(1, 2).astype(dtype)
    da, db, dc = Device(a), Device(b), Device(c)
    one, zero = scalar(dtype, 1), scalar(dtype, 0)
    strided = (
        da.pointer,
        m,
        c_longlong(k * m),
        db.pointer,
        k,
        c_longlong(n * k),
        zero,
        dc.pointer,
        m,
        c_longlong(n * m),
    )
    ok(function(f"{letter}gemmStridedBatched")(handle, N, N, m, n, k, one, *strided, batch))
    same(dc.get(), expected)
    da2, db2, dc2 = Device(a), Device(b), Device(c)
    tables = (pointers(da2, k * m, batch), pointers(db2, n * k, batch), pointers(dc2, n * m, batch))
    arguments = (tables[0].pointer, m, tables[1].pointer, k, zero, tables[2].pointer, m, batch)
    ok(function(f"{letter}gemmBatched")(handle, N, N, m, n, k, one, *arguments))
    same(dc2.get(), expected)


@every_letter("?trsm with every option")
def trsm(letter: str, dtype: type) -> None:
    m, n, ldb = 4, 3, 5
    for side in (LEFT, RIGHT):
        size = m if side == LEFT else n
        for uplo in (UPPER, LOWER):
            for operation in (N, T, C):
                for diagonal in (NON_UNIT, UNIT):
                    a = columns(dtype, size, size, size) / dtype(8) + 4 * np.eye(size, dtype=dtype)
                    b = columns(dtype, m, n, ldb)
                    da, db = Device(a), Device(b)
                    arguments = (m, n, scalar(dtype, 2), da.pointer, size, db.pointer, ldb)
                    ok(function(f"{letter}trsm")(handle, side, uplo, operation, diagonal, *arguments))
                    triangle = np.triu(of(a, size)) if uplo == UPPER else np.tril(of(a, size))
                    if diagonal == UNIT:
                        triangle = triangle - np.diag(np.diag(triangle)) + np.eye(size, dtype=dtype)
                    whole = op(triangle, operation)
                    x = of(db.get(), m)
                    same(
                        (whole @ x if side == LEFT else x @ whole).astype(dtype), (2 * of(b, m)).astype(dtype)
                    )
    tables = (pointers(da, 0, 2), pointers(Device(np.stack([b, b])), b.size, 2))
    b2 = Device(np.stack([b, 3 * b]))
    tables = (pointers(da, 0, 2), pointers(b2, b.size, 2))
    arguments = (m, n, scalar(dtype, 2), tables[0].pointer, size, tables[1].pointer, ldb, 2)
    ok(function(f"{letter}trsmBatched")(handle, RIGHT, LOWER, C, UNIT, *arguments))
    same((of(b2.get()[1], m) @ whole).astype(dtype), (6 * of(b, m)).astype(dtype))


@every_letter("?geam, ?dgmm, ?syrk")
def others(letter: str, dtype: type) -> None:
    m, n, ld = 4, 3, 5
    a, b, c = columns(dtype, m, n, ld), columns(dtype, n, m, ld), columns(dtype, m, n, ld)
    da, db, dc = Device(a), Device(b), Device(c)
    arguments = (m, n, scalar(dtype, 2), da.pointer, ld, scalar(dtype, -1), db.pointer, ld, dc.pointer, ld)
    ok(function(f"{letter}geam")(handle, N, T, *arguments))
    same(of(dc.get(), m).copy(), (2 * of(a, m) - of(b, n).T).astype(dtype))
    x = numbers(dtype, m)
    dx = Device(x)
    ok(function(f"{letter}dgmm")(handle, LEFT, m, n, da.pointer, ld, dx.pointer, 1, dc.pointer, ld))
    same(of(dc.get(), m).copy(), np.diag(x) @ of(a, m))
    k = 3
    square = columns(dtype, m, m, ld)
    dc = Device(square)
    ok(
        function(f"{letter}syrk")(
            handle, UPPER, N, m, k, scalar(dtype, 1), da.pointer, ld, scalar(dtype, 1), dc.pointer, ld
        )
    )
    expected = of(square, m).copy()
    product = (of(a, m) @ of(a, m).T + expected).astype(dtype)
    expected[np.triu_indices(m)] = product[np.triu_indices(m)]
    same(of(dc.get(), m).copy(), expected)


R_32F, R_64F, R_16F, R_8I, C_32F, R_32I, R_16BF = 0, 1, 2, 3, 4, 10, 14
COMPUTE_16F, COMPUTE_32F, COMPUTE_64F, COMPUTE_32I = 64, 68, 70, 72
MIXED = {
    "half, all of it": (np.float16, R_16F, np.float16, R_16F, np.float16, COMPUTE_16F),
    "half, summed in float": (np.float16, R_16F, np.float16, R_16F, np.float32, COMPUTE_32F),
    "half into float": (np.float16, R_16F, np.float32, R_32F, np.float32, COMPUTE_32F),
    "double": (np.float64, R_64F, np.float64, R_64F, np.float64, COMPUTE_64F),
    "complex": (np.complex64, C_32F, np.complex64, C_32F, np.complex64, COMPUTE_32F),
    "bytes into words": (np.int8, R_8I, np.int32, R_32I, np.int32, COMPUTE_32I),
}


def mixed(of_a: type, code_a: int, of_c: type, code_c: int, of_scalar: type, compute: int) -> None:
    m, n, k, batch = 4, 3, 8, 2
    if of_a is np.int8:
        a, b = (random.integers(-100, 100, shape).astype(np.int8) for shape in ((batch, k, m), (batch, n, k)))
        c = random.integers(-9, 9, (batch, n, m)).astype(np.int32)
    else:
        a, b, c = numbers(of_a, batch, k, m), numbers(of_a, batch, n, k), numbers(of_c, batch, n, m)
    wide = np.complex128 if of_a is np.complex64 else np.float64
    product = (a.astype(wide).swapaxes(1, 2) @ b.astype(wide).swapaxes(1, 2)).swapaxes(1, 2)
    expected = (2 * product + c.astype(wide)).astype(of_c)
    two, one = scalar(of_scalar, 2), scalar(of_scalar, 1)
    da, db, dc = Device(a), Device(b), Device(c)
    left, right = (da.pointer, code_a, m), (db.pointer, code_a, k)
    ok(blas.mublasGemmEx(handle, N, N, m, n, k, two, *left, *right, one, dc.pointer, code_c, m, compute, 0))
    assert (dc.get()[1] == c[1]).all()
    compare = (lambda x, y: np.testing.assert_array_equal(x, y)) if of_a is np.int8 else same
    compare(dc.get()[0], expected[0])
    dc = Device(c)
    strided = (
        *left,
        c_longlong(k * m),
        *right,
        c_longlong(n * k),
        one,
        dc.pointer,
        code_c,
        m,
        c_longlong(n * m),
        batch,
    )
    ok(blas.mublasGemmStridedBatchedEx(handle, N, N, m, n, k, two, *strided, compute, 0))
    compare(dc.get(), expected)
    dc = Device(c)
    tables = (pointers(da, k * m, batch), pointers(db, n * k, batch), pointers(dc, n * m, batch))
    arguments = (
        tables[0].pointer,
        code_a,
        m,
        tables[1].pointer,
        code_a,
        k,
        one,
        tables[2].pointer,
        code_c,
        m,
        batch,
    )
    ok(blas.mublasGemmBatchedEx(handle, N, N, m, n, k, two, *arguments, compute, 0))
    compare(dc.get(), expected)


for label, row in MIXED.items():
    CHECKS[f"GemmEx of {label}"] = lambda row=row: mixed(*row)


@check("Hgemm")
def half_gemm() -> None:
    a, b, c = numbers(np.float16, 3, 4), numbers(np.float16, 5, 3), numbers(np.float16, 5, 4)
    da, db, dc = Device(a), Device(b), Device(c)
    arguments = (scalar(np.float16, 1), da.pointer, 4, db.pointer, 3, scalar(np.float16, 0), dc.pointer, 4)
    ok(blas.mublasHgemm(handle, N, N, 4, 5, 3, *arguments))
    same(dc.get(), (a.astype(np.float32).T @ b.astype(np.float32).T).T.astype(np.float16))


@check("what muBLAS refuses")
def refusals() -> None:
    d = Device(numbers(np.float32, 4, 4))
    one = scalar(np.float32, 1)
    ok(blas.mublasCreate(None), 3)
    ok(blas.mublasSetStream(None, stream), 1)
    ok(blas.mublasSgemm(None, N, N, 4, 4, 4, one, d.pointer, 4, d.pointer, 4, one, d.pointer, 4), 1)
    ok(blas.mublasSgemm(handle, 7, N, 4, 4, 4, one, d.pointer, 4, d.pointer, 4, one, d.pointer, 4), 11)
    ok(blas.mublasSgemm(handle, N, N, 4, 4, 4, one, d.pointer, 3, d.pointer, 4, one, d.pointer, 4), 4)
    ok(blas.mublasSgemm(handle, N, N, -1, 4, 4, one, d.pointer, 4, d.pointer, 4, one, d.pointer, 4), 4)
    ok(blas.mublasSgemm(handle, N, N, 4, 4, 4, one, None, 4, d.pointer, 4, one, d.pointer, 4), 3)
    ok(
        blas.mublasGemmEx(
            handle, N, N, 4, 4, 4, one, d.pointer, 99, 4, d.pointer, 0, 4, one, d.pointer, 0, 4, 68, 0
        ),
        2,
    )
    ok(
        blas.mublasGemmEx(
            handle, N, N, 4, 4, 4, one, d.pointer, 0, 4, d.pointer, 0, 4, one, d.pointer, 0, 4, 1, 0
        ),
        11,
    )
    ok(blas.mublasSetPointerMode(handle, 5), 11)
    gone = c_void_p()
    ok(blas.mublasCreate(byref(gone)))
    ok(blas.mublasDestroy(gone))
    blas.mublasGetStatusString.restype = ctypes.c_char_p
    assert blas.mublasGetStatusString(11) == b"MUBLAS_STATUS_INVALID_VALUE"


@check("a product is captured and replayed")
def captured() -> None:
    a = Device(np.eye(4, dtype=np.float32))
    b = Device(numbers(np.float32, 4, 4))
    c = Device(np.zeros((4, 4), np.float32))
    one = scalar(np.float32, 1)
    graph, executable = c_void_p(), c_void_p()
    ok(rt.musaStreamBeginCapture(stream, 1))
    ok(blas.mublasSgemm(handle, N, N, 4, 4, 4, one, a.pointer, 4, b.pointer, 4, one, c.pointer, 4))
    result = np.zeros(1, np.float32)
    # A result for the host would be a wait.
    status = blas.mublasSnrm2(handle, 4, a.pointer, 1, result.ctypes.data_as(c_void_p))
    assert status != 0
    rt.musaStreamEndCapture(stream, byref(graph))
    rt.musaGetLastError()
    ok(rt.musaStreamBeginCapture(stream, 1))
    ok(blas.mublasSgemm(handle, N, N, 4, 4, 4, one, a.pointer, 4, b.pointer, 4, one, c.pointer, 4))
    ok(rt.musaStreamEndCapture(stream, byref(graph)))
    assert (c.get() == 0).all()
    ok(rt.musaGraphInstantiate(byref(executable), graph, None, None, c_size_t(0)))
    for _ in range(3):
        ok(rt.musaGraphLaunch(executable, stream))
    same(c.get(), 3 * b.values)


# ---- muFFT

C2C, R2C, C2R, Z2Z, D2Z, Z2D = 0x29, 0x2A, 0x2C, 0x69, 0x6A, 0x6C


def plan_of(make: Callable, *arguments: object) -> c_int:
    plan = c_int(-1)
    ok(make(byref(plan), *arguments))
    ok(fft.mufftSetStream(plan, stream))
    return plan


@check("transforms of one, two and three dimensions")
def transforms() -> None:
    for dtype, kind, run in ((np.complex64, C2C, fft.mufftExecC2C), (np.complex128, Z2Z, fft.mufftExecZ2Z)):
        for shape in ((12,), (6, 5), (3, 4, 5)):
            make = (fft.mufftPlan1d, fft.mufftPlan2d, fft.mufftPlan3d)[len(shape) - 1]
            plan = plan_of(make, *shape, kind, *((1,) if len(shape) == 1 else ()))
            x = numbers(dtype, *shape)
            source, target = Device(x), Device(np.zeros_like(x))
            ok(run(plan, source.pointer, target.pointer, -1))
            same(target.get(), np.fft.fftn(x).astype(dtype))
            ok(run(plan, target.pointer, target.pointer, 1))
            same(target.get(), (x * x.size).astype(dtype))
            ok(fft.mufftDestroy(plan))


@check("real transforms, apart and in place")
def real_transforms() -> None:
    for real, to, back, forward, inverse in (
        (np.float32, R2C, C2R, fft.mufftExecR2C, fft.mufftExecC2R),
        (np.float64, D2Z, Z2D, fft.mufftExecD2Z, fft.mufftExecZ2D),
    ):
        complex_type = np.complex64 if real is np.float32 else np.complex128
        n, batch = 10, 3
        x = numbers(real, batch, n)
        source, target = Device(x), Device(np.zeros((batch, n // 2 + 1), complex_type))
        plan, plan_back = plan_of(fft.mufftPlan1d, n, to, batch), plan_of(fft.mufftPlan1d, n, back, batch)
        ok(forward(plan, source.pointer, target.pointer))
        same(target.get(), np.fft.rfft(x).astype(complex_type))
        ok(inverse(plan_back, target.pointer, source.pointer))
        same(source.get(), (x * n).astype(real))
        padded = np.zeros((batch, 2 * (n // 2 + 1)), real)
        padded[:, :n] = x
        both = Device(padded)
        ok(forward(plan, both.pointer, both.pointer))
        same(both.get().view(complex_type), np.fft.rfft(x).astype(complex_type))
        ok(inverse(plan_back, both.pointer, both.pointer))
        same(both.get()[:, :n].copy(), (x * n).astype(real))


@check("transforms of strided data")
def strided_transforms() -> None:
    n, batch, stride = (4, 6), 2, 3
    embed = (c_int * 2)(5, 7)
    x = numbers(np.complex64, batch, 5, 7, stride)
    source, target = Device(x), Device(np.zeros((batch, *n), np.complex64))
    tight = (c_int * 2)(*n)
    plan = plan_of(
        fft.mufftPlanMany,
        2,
        (c_int * 2)(*n),
        embed,
        stride,
        5 * 7 * stride,
        tight,
        1,
        n[0] * n[1],
        C2C,
        batch,
    )
    ok(fft.mufftExecC2C(plan, source.pointer, target.pointer, -1))
    same(target.get(), np.fft.fft2(x[:, : n[0], : n[1], 0]).astype(np.complex64))
    plan = c_int()
    size = c_size_t(9)
    ok(fft.mufftCreate(byref(plan)))
    ok(fft.mufftSetAutoAllocation(plan, 0))
    long = (c_longlong * 1)(8)
    none = (None, c_longlong(1), c_longlong(0))
    ok(fft.mufftXtMakePlanMany(plan, 1, long, *none, 4, *none, 4, c_longlong(2), byref(size), 4))
    ok(fft.mufftSetStream(plan, stream))
    x = numbers(np.complex64, 2, 8)
    source, area = Device(x), Device(np.zeros(size.value, np.uint8))
    ok(fft.mufftXtExec(plan, source.pointer, source.pointer, -1), 13)  # no workspace
    ok(fft.mufftSetWorkArea(plan, area.pointer))
    ok(fft.mufftXtExec(plan, source.pointer, source.pointer, -1))
    same(source.get(), np.fft.fft(x).astype(np.complex64))


@check("what muFFT refuses")
def fft_refusals() -> None:
    plan = c_int()
    ok(fft.mufftPlan1d(byref(plan), 0, C2C, 1), 8)
    ok(fft.mufftPlan1d(byref(plan), 8, 0x11, 1), 3)
    ok(fft.mufftPlan1d(None, 8, C2C, 1), 4)
    ok(fft.mufftExecC2C(12345, None, None, -1), 1)
    good = plan_of(fft.mufftPlan1d, 8, C2C, 1)
    d = Device(numbers(np.complex64, 8))
    ok(fft.mufftExecC2C(good, d.pointer, d.pointer, 0), 4)
    ok(fft.mufftExecR2C(good, d.pointer, d.pointer), 3)
    ok(fft.mufftDestroy(good))
    ok(fft.mufftDestroy(good), 1)


# ---- muRAND


@check("random numbers: repeatable, and of their distribution")
def random_numbers() -> None:
    generator = c_void_p()
    ok(rand.murandCreateGenerator(byref(generator), 100))
    ok(rand.murandSetStream(generator, stream))
    n = 20000

    def draw(function: Callable, dtype: type, *more: object, seed: int = 5, offset: int = 0) -> np.ndarray:
        ok(rand.murandSetPseudoRandomGeneratorSeed(generator, ctypes.c_ulonglong(seed)))
        ok(rand.murandSetGeneratorOffset(generator, ctypes.c_ulonglong(offset)))
        output = Device(np.zeros(n, dtype))
        ok(function(generator, output.pointer, c_size_t(n), *more))
        return output.get()

    words = draw(rand.murandGenerate, np.uint32)
    np.testing.assert_array_equal(words, draw(rand.murandGenerate, np.uint32))
    np.testing.assert_array_equal(words[7:], draw(rand.murandGenerate, np.uint32, offset=7)[:-7])
    assert (words != draw(rand.murandGenerate, np.uint32, seed=6)).mean() > 0.99
    for function, dtype in (
        (rand.murandGenerateUniform, np.float32),
        (rand.murandGenerateUniformDouble, np.float64),
    ):
        x = draw(function, dtype)
        assert x.min() > 0 and x.max() <= 1
        assert abs(x.mean() - 0.5) < 0.02 and abs(x.var() - 1 / 12) < 0.01  # 5 standard errors and more
    for function, dtype, c in (
        (rand.murandGenerateNormal, np.float32, c_float),
        (rand.murandGenerateNormalDouble, np.float64, c_double),
    ):
        x = draw(function, dtype, c(3), c(2))
        assert abs(x.mean() - 3) < 0.1 and abs(x.std() - 2) < 0.1 and 0.6 < (abs(x - 3) < 2).mean() < 0.76
    logs = draw(rand.murandGenerateLogNormal, np.float32, c_float(0), c_float(1))
    np.testing.assert_allclose(
        np.log(logs), draw(rand.murandGenerateNormal, np.float32, c_float(0), c_float(1)), atol=1e-4
    )
    # One call after another goes on in the sequence.
    output = Device(np.zeros(10, np.uint32))
    ok(rand.murandSetPseudoRandomGeneratorSeed(generator, ctypes.c_ulonglong(5)))
    for i in range(2):
        ok(rand.murandGenerate(generator, c_void_p(output.pointer.value + 20 * i), c_size_t(5)))
    np.testing.assert_array_equal(output.get(), words[:10])
    ok(rand.murandGenerateNormal(generator, output.pointer, c_size_t(5), c_float(0), c_float(1)), 105)
    ok(rand.murandCreateGenerator(byref(c_void_p()), 202), 103)  # scrambled
    ok(rand.murandSetQuasiRandomGeneratorDimensions(generator, 2), 103)
    ok(rand.murandSetGeneratorOrdering(generator, 101))
    ok(rand.murandSetGeneratorOrdering(generator, 201), 104)
    ok(rand.murandDestroyGenerator(generator))


@check("quasi-random numbers: Sobol's sequence, dimension after dimension")
def quasi_random_numbers() -> None:
    def create(type_: int, dimensions: int) -> c_void_p:
        generator = c_void_p()
        ok(rand.murandCreateGenerator(byref(generator), type_))
        ok(rand.murandSetStream(generator, stream))
        ok(rand.murandSetGeneratorOrdering(generator, 201))
        ok(rand.murandSetGeneratorOrdering(generator, 101), 104)
        ok(rand.murandSetQuasiRandomGeneratorDimensions(generator, dimensions))
        return generator

    n, dimensions = 1024, 50
    sobol32, sobol64 = create(201, dimensions), create(203, dimensions)
    output = Device(np.zeros(n * dimensions, np.uint32))
    ok(rand.murandGenerate(sobol32, output.pointer, c_size_t(n * dimensions)))
    words = output.get().reshape(dimensions, n)
    # Joe and Kuo's first points; and of 2^k points, each dimension has one in each of 2^k intervals.
    eighths = words[:3, :8] // 2**29
    np.testing.assert_array_equal(
        eighths, [[0, 4, 6, 2, 3, 7, 5, 1], [0, 4, 2, 6, 3, 7, 1, 5], [0, 4, 2, 6, 5, 1, 7, 3]]
    )
    for row in words:
        np.testing.assert_array_equal(np.sort(row), np.arange(n, dtype=np.uint32) * (2**32 // n))
    assert len({row.tobytes() for row in words}) == dimensions
    for generator, function, dtype in (
        (sobol32, rand.murandGenerateUniform, np.float32),
        (sobol32, rand.murandGenerateUniformDouble, np.float64),
        (sobol64, rand.murandGenerateUniform, np.float32),
        (sobol64, rand.murandGenerateUniformDouble, np.float64),
    ):
        output = Device(np.zeros(10 * dimensions, dtype))
        for offset in (5, 1000):
            ok(rand.murandSetGeneratorOffset(generator, ctypes.c_ulonglong(offset)))
            ok(function(generator, output.pointer, c_size_t(10 * dimensions)))
            x = output.get().reshape(dimensions, 10)
            np.testing.assert_allclose(x, words[:, offset : offset + 10] * 2.0**-32, rtol=1e-6, atol=1e-9)
            assert x.min() > 0
        # The next call goes on behind those points.
        ok(function(generator, output.pointer, c_size_t(10 * dimensions)))
        np.testing.assert_allclose(
            output.get().reshape(dimensions, 10), words[:, 1010:1020] * 2.0**-32, rtol=1e-6, atol=1e-9
        )
    last = ctypes.c_ulonglong(2**30 - 1)
    ok(rand.murandSetGeneratorOffset(sobol32, last))
    ok(rand.murandGenerateUniformDouble(sobol32, output.pointer, c_size_t(2 * dimensions)), 104)
    ok(rand.murandGenerateUniformDouble(sobol32, output.pointer, c_size_t(dimensions)))
    ok(rand.murandGenerateUniformDouble(sobol32, output.pointer, c_size_t(dimensions)), 104)
    ok(rand.murandGenerateUniform(sobol32, output.pointer, c_size_t(dimensions + 1)), 105)
    ok(rand.murandGenerateNormal(sobol32, output.pointer, c_size_t(2), c_float(0), c_float(1)), 103)
    ok(rand.murandGenerate(sobol64, output.pointer, c_size_t(dimensions)), 103)
    ok(rand.murandSetPseudoRandomGeneratorSeed(sobol32, ctypes.c_ulonglong(5)), 103)
    for wrong in (0, 20001):
        ok(rand.murandSetQuasiRandomGeneratorDimensions(sobol32, wrong), 104)
    for generator in (sobol32, sobol64):
        ok(rand.murandDestroyGenerator(generator))


def run_all() -> dict[str, str]:
    """Runs every check. Returns its name -> the difference, or "" if there is none."""
    ok(rt.musaStreamCreateWithFlags(byref(stream), 1))
    ok(blas.mublasCreate(byref(handle)))
    ok(blas.mublasSetStream(handle, stream))
    results = {}
    for name, run in CHECKS.items():
        try:
            run()
            results[name] = ""
        except AssertionError as error:
            results[name] = str(error)[:500] or "assertion"
    return results
