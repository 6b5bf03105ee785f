# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Products of muBLASLt with their epilogues, against NumPy."""

from __future__ import annotations

import itertools
from ctypes import Structure, byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

import numpy as np

from tests.musa_emulator_math.checks import (
    C_32F,
    COMPUTE_32F,
    COMPUTE_32I,
    COMPUTE_64F,
    R_8I,
    R_16F,
    R_32F,
    R_32I,
    R_64F,
    C,
    Device,
    N,
    T,
    check,
    library,
    numbers,
    ok,
    op,
    random,
    same,
    scalar,
    stream,
)

lt = library("mublasLt")
TRANSA, TRANSB, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8
DEFAULT, RELU, BIAS, RELU_BIAS, GELU, GELU_BIAS = 1, 2, 4, 6, 32, 36
ROWS, LD, BATCH_COUNT, BATCH_OFFSET = 2, 4, 5, 6
INVALID_HANDLE, NOT_IMPLEMENTED, INVALID_POINTER, INVALID_SIZE, INVALID_VALUE = 1, 2, 3, 4, 11


class Result(Structure):
    """mublasLtMatmulHeuristicResult_t"""

    _fields_ = [
        ("algo", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


def new_handle() -> c_void_p:
    handle = c_void_p()
    ok(lt.mublasLtCreate(byref(handle)))
    return handle


def description(
    compute: int, scale: int, transa: int = N, transb: int = N, epilogue: int = DEFAULT
) -> c_void_p:
    made = c_void_p()
    ok(lt.mublasLtMatmulDescCreate(byref(made), compute, scale))
    for attribute, value in ((TRANSA, transa), (TRANSB, transb), (EPILOGUE, epilogue)):
        ok(lt.mublasLtMatmulDescSetAttribute(made, attribute, byref(c_int(value)), c_size_t(4)))
    return made


def set_bias(desc: c_void_p, bias: Device) -> None:
    ok(lt.mublasLtMatmulDescSetAttribute(desc, BIAS_POINTER, byref(bias.pointer), c_size_t(8)))


def layout(kind: int, rows: int, columns: int, ld: int, batch: int = 1, offset: int = 0) -> c_void_p:
    made = c_void_p()
    ok(lt.mublasLtMatrixLayoutCreate(byref(made), kind, c_uint64(rows), c_uint64(columns), c_int64(ld)))
    if batch != 1:
        ok(lt.mublasLtMatrixLayoutSetAttribute(made, BATCH_COUNT, byref(c_int32(batch)), c_size_t(4)))
        ok(lt.mublasLtMatrixLayoutSetAttribute(made, BATCH_OFFSET, byref(c_int64(offset)), c_size_t(8)))
    return made


def epilogue_of(x: np.ndarray, bias: np.ndarray, epilogue: int) -> np.ndarray:
    if epilogue in (BIAS, RELU_BIAS, GELU_BIAS):
        x = x + bias[:, None]
    if epilogue in (RELU, RELU_BIAS):
        return np.maximum(x, 0)
    if epilogue in (GELU, GELU_BIAS):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x


KINDS = {
    "float": (np.float32, R_32F, np.float32, R_32F, COMPUTE_32F, R_32F, np.float32),
    "double": (np.float64, R_64F, np.float64, R_64F, COMPUTE_64F, R_64F, np.float64),
    "half, summed in float": (np.float16, R_16F, np.float16, R_16F, COMPUTE_32F, R_32F, np.float32),
    "half into float": (np.float16, R_16F, np.float32, R_32F, COMPUTE_32F, R_32F, np.float32),
}


def products(
    of_a: type, code_a: int, of_c: type, code_c: int, compute: int, scale: int, of_scale: type
) -> None:
    """Every epilogue and operation, batches, and a `d` that is not `c`."""
    handle = new_handle()
    m, n, k, batch, pad = 4, 3, 6, 2, 1
    for transa, transb in itertools.product((N, T), (N, T)):
        shape_a, shape_b = (m, k) if transa == N else (k, m), (k, n) if transb == N else (n, k)
        # Storage of column-major matrices: [batch, column, row].
        a, b = (numbers(of_a, batch, s[1], s[0] + pad) for s in (shape_a, shape_b))
        c, bias = numbers(of_c, batch, n, m + pad), numbers(of_c, m)
        of = lambda storage: storage[..., :-pad].swapaxes(1, 2).astype(np.float64)  # noqa: E731
        plain = 2 * (op(of(a), transa) @ op(of(b), transb))
        da, db, dc, dbias = Device(a), Device(b), Device(c), Device(bias)
        la = layout(code_a, *shape_a, shape_a[0] + pad, batch, a[0].size)
        lb = layout(code_a, *shape_b, shape_b[0] + pad, batch, b[0].size)
        lc = layout(code_c, m, n, m + pad, batch, c[0].size)
        for epilogue, beta in itertools.product((DEFAULT, RELU, BIAS, RELU_BIAS, GELU, GELU_BIAS), (0, -1)):
            desc = description(compute, scale, transa, transb, epilogue)
            set_bias(desc, dbias)
            d = Device(np.full_like(c, 7))
            two, kept = scalar(of_scale, 2), scalar(of_scale, beta)
            inputs = (two, da.pointer, la, db.pointer, lb, kept, dc.pointer, lc)
            ok(lt.mublasLtMatmul(handle, desc, *inputs, d.pointer, lc, None, None, c_size_t(0), stream))
            got = d.get()
            assert (got[..., -pad:] == 7).all(), "elements between the columns were written"
            expected = np.stack(
                [epilogue_of(x, bias.astype(np.float64), epilogue) for x in plain + beta * of(c)]
            )
            same(np.ascontiguousarray(got[..., :-pad].swapaxes(1, 2)), expected.astype(of_c))
            # c may be d.
            both = Device(c)
            inputs = (two, da.pointer, la, db.pointer, lb, kept, both.pointer, lc)
            ok(lt.mublasLtMatmul(handle, desc, *inputs, both.pointer, lc, None, None, c_size_t(0), stream))
            same(np.ascontiguousarray(both.get()[..., :-pad]), np.ascontiguousarray(got[..., :-pad]))
            ok(lt.mublasLtMatmulDescDestroy(desc))
        for made in (la, lb, lc):
            ok(lt.mublasLtMatrixLayoutDestroy(made))
    ok(lt.mublasLtDestroy(handle))


for label, row in KINDS.items():
    check(f"mublasLtMatmul of {label}")(lambda row=row: products(*row))


@check("mublasLtMatmul of bytes and of complex numbers, as the heuristic suggests")
def other_types() -> None:
    handle = new_handle()
    m, n, k = 3, 4, 5
    preference = c_void_p()
    ok(lt.mublasLtMatmulPreferenceCreate(byref(preference)))
    ok(lt.mublasLtMatmulPreferenceSetAttribute(preference, 1, byref(c_size_t(1024)), c_size_t(8)))
    a, b = (random.integers(-100, 100, shape).astype(np.int8) for shape in ((m, k), (n, k)))
    x, y = numbers(np.complex64, k, m), numbers(np.complex64, n, k)
    for left, right, kind, out, scale_type, scale, compute, transa, expected in (
        (a, b, R_8I, R_32I, R_32I, np.int32, COMPUTE_32I, T, (a.astype(np.int32) @ b.astype(np.int32).T).T),
        (x, y, C_32F, C_32F, C_32F, np.complex64, COMPUTE_32F, N, (x.T @ y.T).T),
    ):
        desc = description(compute, scale_type, transa)
        la = layout(kind, k, m, k) if transa == T else layout(kind, m, k, m)
        lb, lc = layout(kind, k, n, k), layout(out, m, n, m)
        results, returned = (Result * 2)(), c_int(-1)
        ok(
            lt.mublasLtMatmulAlgoGetHeuristic(
                handle, desc, la, lb, lc, lc, preference, 2, byref(results), byref(returned)
            )
        )
        assert (returned.value, results[0].state, results[0].workspace) == (1, 0, 0)
        da, db, dc = Device(left), Device(right), Device(np.zeros((n, m), expected.dtype))
        one, zero = scalar(scale, 1), scalar(scale, 0)
        inputs = (one, da.pointer, la, db.pointer, lb, zero, dc.pointer, lc)
        algo = byref(results[0], Result.algo.offset)
        ok(lt.mublasLtMatmul(handle, desc, *inputs, dc.pointer, lc, algo, None, c_size_t(0), stream))
        if kind == R_8I:
            np.testing.assert_array_equal(dc.get(), expected)
        else:
            same(dc.get(), np.ascontiguousarray(expected))
    ok(lt.mublasLtMatmulPreferenceDestroy(preference))


@check("attributes and refusals of muBLASLt")
def refusals() -> None:
    handle = new_handle()
    desc = description(COMPUTE_32F, R_32F)
    square, wide = layout(R_32F, 4, 4, 4), layout(R_32F, 4, 5, 4)
    value, written = c_int(0), c_size_t(0)
    ok(lt.mublasLtMatmulDescSetAttribute(desc, TRANSA, byref(c_int(T)), c_size_t(4)))
    ok(lt.mublasLtMatmulDescGetAttribute(desc, TRANSA, byref(value), c_size_t(4), byref(written)))
    assert (value.value, written.value) == (T, 4)
    rows = c_uint64(0)
    ok(lt.mublasLtMatrixLayoutGetAttribute(wide, ROWS, byref(rows), c_size_t(8), None))
    assert rows.value == 4
    ok(lt.mublasLtMatmulDescSetAttribute(desc, TRANSA, byref(c_int(T)), c_size_t(8)), INVALID_VALUE)
    ok(lt.mublasLtMatmulDescSetAttribute(desc, 99, byref(c_int(T)), c_size_t(4)), INVALID_VALUE)
    ok(lt.mublasLtMatmulDescSetAttribute(square, TRANSA, byref(c_int(T)), c_size_t(4)), INVALID_POINTER)
    memory = Device(numbers(np.float32, 4, 5))
    one = scalar(np.float32, 1)

    def run(
        expected: int, h: object = handle, a: object = square, c: object = square, d: object = memory.pointer
    ) -> None:
        inputs = (one, memory.pointer, a, memory.pointer, square, one, memory.pointer, c)
        ok(lt.mublasLtMatmul(h, desc, *inputs, d, c, None, None, c_size_t(0), stream), expected)

    run(INVALID_HANDLE, h=None)
    run(INVALID_SIZE, a=wide)
    run(INVALID_POINTER, a=None)
    run(INVALID_POINTER, d=None)
    run(NOT_IMPLEMENTED, c=layout(99, 4, 4, 4))
    run(INVALID_SIZE, c=layout(R_32F, 4, 4, 3))
    run(INVALID_SIZE, c=layout(R_32F, 4, 4, 4, 2, 16))
    ok(lt.mublasLtMatmulDescSetAttribute(desc, EPILOGUE, byref(c_int(RELU_BIAS)), c_size_t(4)))
    run(INVALID_POINTER)  # no bias was given
    ok(lt.mublasLtMatmulDescSetAttribute(desc, EPILOGUE, byref(c_int(999)), c_size_t(4)))
    run(NOT_IMPLEMENTED)
    ok(lt.mublasLtMatmulDescSetAttribute(desc, EPILOGUE, byref(c_int(DEFAULT)), c_size_t(4)))
    ok(lt.mublasLtMatmulDescSetAttribute(desc, TRANSA, byref(c_int(C + 1)), c_size_t(4)))
    run(INVALID_VALUE)
    preference, results, returned = c_void_p(), (Result * 1)(), c_int(-1)
    ok(lt.mublasLtMatmulPreferenceCreate(byref(preference)))
    arguments = (square, square, square, square, preference, 1, byref(results), byref(returned))
    ok(lt.mublasLtMatmulAlgoGetHeuristic(handle, desc, *arguments), INVALID_VALUE)
    assert returned.value == 0
    ok(lt.mublasLtMatrixLayoutSetAttribute(square, LD, byref(c_int64(9)), c_size_t(8)))
    ok(lt.mublasLtDestroy(handle))
    ok(lt.mublasLtDestroy(None), INVALID_HANDLE)
