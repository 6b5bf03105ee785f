# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls of muSOLVER: factors multiply to the matrix, and solutions solve the system, in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_int

import numpy as np

from tests.musa_emulator_math.checks import (
    C,
    Device,
    N,
    T,
    check,
    columns,
    every_letter,
    handle,
    library,
    numbers,
    of,
    ok,
    op,
    same,
)

solver = library("musolver")
ALL, SINGULAR, OVERWRITE, NONE = 191, 192, 193, 194
OUT_OF_PLACE = 201


def function(name: str) -> Callable:
    return getattr(solver, f"musolver{name}")


def buffer(name: str, *arguments: object) -> Device:
    size = c_int(0)
    ok(function(f"{name}_bufferSize")(*arguments, byref(size)))
    assert size.value > 0
    return Device(np.zeros(size.value, np.uint8))


def exchanged(rows: np.ndarray, pivots: np.ndarray) -> np.ndarray:
    """`rows` after the exchanges that getrf made."""
    result = rows.copy()
    for i, pivot in enumerate(pivots - 1):
        result[[i, pivot]] = result[[pivot, i]]
    return result


@every_letter("?getrf and ?getrs")
def getrf(letter: str, dtype: type) -> None:
    for m, n in ((5, 5), (6, 3), (3, 6)):
        ld, k = m + 2, min(m, n)
        a = columns(dtype, m, n, ld)
        da, pivots, info = Device(a), Device(np.zeros(k, np.int32)), Device(np.full(1, -9, np.int32))
        work = buffer(f"{letter}getrf", m, n, True)
        ok(
            function(f"{letter}getrf")(
                handle, m, n, da.pointer, ld, pivots.pointer, info.pointer, work.pointer
            )
        )
        got = da.get()
        assert (got[:, m:] == a[:, m:]).all(), "elements between the columns were written"
        lu = of(got, m)
        lower = np.tril(lu[:, :k], -1) + np.eye(m, k, dtype=dtype)
        same((lower @ np.triu(lu[:k])).astype(dtype), exchanged(of(a, m), pivots.get()))
        assert info.get() == 0
        if m != n:
            continue
        for operation in (N, T, C):
            b = columns(dtype, n, 4, ld)
            db = Device(b)
            work = buffer(f"{letter}getrs", operation, n, 4)
            arguments = (operation, n, 4, da.pointer, ld, pivots.pointer, db.pointer, ld, work.pointer)
            ok(function(f"{letter}getrs")(handle, *arguments))
            x = of(db.get(), n)
            expected = np.linalg.solve(
                op(of(a, n), operation).astype(np.complex128), of(b, n).astype(np.complex128)
            )
            limit = 1e-3 if letter in "SC" else 1e-10  # the condition number of a random matrix is below 1e3
            np.testing.assert_allclose(
                x, expected if letter in "CZ" else expected.real, rtol=limit, atol=limit
            )


@check("getrf of a singular matrix names the element that is 0")
def singular() -> None:
    a = Device(np.array([[1, 2, 0], [2, 4, 0], [0, 0, 1]], np.float64))
    pivots, info = Device(np.zeros(3, np.int32)), Device(np.full(1, -9, np.int32))
    ok(solver.musolverDgetrf(handle, 3, 3, a.pointer, 3, pivots.pointer, info.pointer, None))
    assert info.get() == 2, info.get()


@every_letter("?geqrf, and the orthogonal matrix of its reflectors")
def geqrf(letter: str, dtype: type) -> None:
    name = f"{letter}orgqr" if letter in "SD" else f"{letter}ungqr"
    for m, n in ((6, 4), (5, 5)):
        ld = m + 1
        a = columns(dtype, m, n, ld)
        da, tau = Device(a), Device(np.zeros(n, dtype))
        work = buffer(f"{letter}geqrf", m, n)
        ok(function(f"{letter}geqrf")(handle, m, n, da.pointer, ld, tau.pointer, work.pointer))
        upper = np.triu(of(da.get(), m)[:n])
        work = buffer(name, m, n, n)
        ok(function(name)(handle, m, n, n, da.pointer, ld, tau.pointer, work.pointer))
        got = da.get()
        assert (got[:, m:] == a[:, m:]).all(), "elements between the columns were written"
        q = of(got, m)
        same((q @ upper).astype(dtype), of(a, m).copy())
        same((q.conj().T @ q).astype(dtype), np.eye(n, dtype=dtype))
    wide = columns(dtype, 3, 5, 3)
    da, tau = Device(wide), Device(np.zeros(3, dtype))
    ok(function(f"{letter}geqrf")(handle, 3, 5, da.pointer, 3, tau.pointer, None))
    upper = np.triu(of(da.get(), 3))
    gram = of(wide, 3).conj().T @ of(wide, 3)
    same((upper.conj().T @ upper).astype(dtype), gram.astype(dtype))


@every_letter("?gesvd with every choice of vectors")
def gesvd(letter: str, dtype: type) -> None:
    real = np.zeros(1, dtype).real.dtype
    for m, n in ((6, 4), (4, 6)):
        k = min(m, n)
        a = columns(dtype, m, n, m)
        values = np.linalg.svd(of(a, m).astype(np.complex128), compute_uv=False).astype(real)
        for left in (ALL, SINGULAR, OVERWRITE, NONE):
            for right in (ALL, SINGULAR, OVERWRITE, NONE):
                if left == right == OVERWRITE:
                    continue
                da, s, e = Device(a), Device(np.zeros(k, real)), Device(np.ones(k - 1, dtype))
                info = Device(np.full(1, -9, np.int32))
                u, v = Device(np.zeros((m, m), dtype)), Device(np.zeros((n, n), dtype))
                work = buffer(f"{letter}gesvd", left, right, m, n, 1, OUT_OF_PLACE)
                outputs = (s.pointer, u.pointer, m, v.pointer, n, e.pointer, OUT_OF_PLACE, info.pointer)
                run = function(f"{letter}gesvd")
                ok(run(handle, left, right, m, n, da.pointer, m, *outputs, work.pointer))
                same(s.get(), values)
                assert info.get() == 0 and (e.get() == 0).all()
                sources = {ALL: u, SINGULAR: u, OVERWRITE: da}
                of_u = of(sources[left].get(), m)[:, :k] if left != NONE else None
                sources = {ALL: v, SINGULAR: v, OVERWRITE: da}
                rows = m if right == OVERWRITE else n
                of_v = of(sources[right].get(), rows)[:k, :n] if right != NONE else None
                if of_u is not None and of_v is not None:
                    same((of_u * s.get() @ of_v).astype(dtype), of(a, m).copy())
                for part in (of_u, None if of_v is None else of_v.conj().T):
                    if part is not None:
                        same((part.conj().T @ part).astype(dtype), np.eye(k, dtype=dtype))
                if left == ALL:
                    square = u.get().T
                    same((square.conj().T @ square).astype(dtype), np.eye(m, dtype=dtype))


@check("what muSOLVER refuses")
def refusals() -> None:
    a = Device(numbers(np.float32, 3, 3))
    pivots, info = Device(np.ones(3, np.int32)), Device(np.zeros(1, np.int32))
    size = c_int(0)
    ok(solver.musolverSgetrf_bufferSize(3, 3, True, None), 3)
    ok(solver.musolverSgetrf_bufferSize(-3, 3, True, byref(size)), 4)
    ok(solver.musolverSgetrs_bufferSize(5, 3, 3, byref(size)), 11)
    ok(solver.musolverSgetrf(None, 3, 3, a.pointer, 3, pivots.pointer, info.pointer, None), 1)
    ok(solver.musolverSgetrf(handle, 3, 3, a.pointer, 2, pivots.pointer, info.pointer, None), 4)
    ok(solver.musolverSgetrf(handle, 3, 3, a.pointer, 3, None, info.pointer, None), 3)
    ok(solver.musolverSgetrs(handle, 9, 3, 1, a.pointer, 3, pivots.pointer, a.pointer, 3, None), 11)
    ok(solver.musolverSgeqrf(handle, 3, 3, a.pointer, 3, None, None), 3)
    ok(solver.musolverSorgqr(handle, 2, 3, 3, a.pointer, 3, a.pointer, None), 4)
    vectors = (a.pointer, 3, a.pointer, 3)
    arguments = (3, 3, a.pointer, 3, a.pointer, *vectors, None, OUT_OF_PLACE, info.pointer, None)
    ok(solver.musolverSgesvd(handle, OVERWRITE, OVERWRITE, *arguments), 11)
    ok(solver.musolverSgesvd(handle, 5, NONE, *arguments), 11)
