# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls of muSPARSE against dense products of NumPy."""

from __future__ import annotations

import itertools
from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p

import numpy as np

from tests.musa_emulator_math.checks import (
    C_32F,
    LETTERS,
    R_16F,
    R_32F,
    R_64F,
    C,
    Device,
    N,
    T,
    check,
    every_letter,
    library,
    numbers,
    ok,
    op,
    random,
    same,
    scalar,
    stream,
)

sparse = library("musparse")
C_64F = 5
TYPES = {"S": R_32F, "D": R_64F, "C": C_32F, "Z": C_64F}
ROW, COLUMN = 0, 1
AUTO, BUFFER_SIZE, PREPROCESS, COMPUTE = range(4)
INVALID_HANDLE, NOT_IMPLEMENTED, INVALID_POINTER, INVALID_SIZE, INVALID_VALUE = 1, 2, 3, 4, 7


def new_handle() -> c_void_p:
    handle = c_void_p()
    ok(sparse.musparseCreate(byref(handle)))
    ok(sparse.musparseSetStream(handle, stream))
    return handle


def entries(dtype: type, rows: int, columns: int) -> np.ndarray:
    """A dense array in which about a third of the elements is not 0, and one row is empty."""
    dense = numbers(dtype, rows, columns) * (random.random((rows, columns)) < 0.35)
    dense[rows // 2] = 0
    return dense.astype(dtype)


class Matrix:
    """A descriptor of `dense` and the device arrays that it refers to."""

    def __init__(
        self,
        dense: np.ndarray,
        letter: str,
        coo: bool = False,
        wide: tuple[bool, bool] = (False, False),
        base: int = 0,
    ) -> None:
        rows, columns = np.nonzero(dense)
        kinds = [np.int64 if w else np.int32 for w in wide]
        self.values = Device(np.ascontiguousarray(dense[rows, columns]))
        if coo:
            order = random.permutation(len(rows))  # entries may come in any order
            rows, columns = rows[order], columns[order]
            self.values = Device(np.ascontiguousarray(dense[rows, columns]))
            first = rows
        else:
            first = np.concatenate([[0], np.cumsum(np.count_nonzero(dense, axis=1))])
        self.rows = Device((first + base).astype(kinds[0]))
        self.columns = Device((columns + base).astype(kinds[1]))
        self.descriptor = c_void_p()
        shape = (c_longlong(dense.shape[0]), c_longlong(dense.shape[1]), c_longlong(len(columns)))
        arrays = (self.rows.pointer, self.columns.pointer, self.values.pointer)
        index_types = [3 if w else 2 for w in wide]
        if coo:
            create, indices = sparse.musparseCreateCoo, index_types[:1]
        else:
            create, indices = sparse.musparseCreateCsr, index_types
        ok(create(byref(self.descriptor), *shape, *arrays, *indices, base, TYPES[letter]))

    def destroy(self) -> None:
        ok(sparse.musparseDestroySpMat(self.descriptor))


def vector(device: Device, letter: str) -> c_void_p:
    descriptor = c_void_p()
    ok(
        sparse.musparseCreateDnVec(
            byref(descriptor), c_longlong(device.values.size), device.pointer, TYPES[letter]
        )
    )
    return descriptor


def dense(storage: Device, rows: int, columns: int, letter: str, order: int) -> c_void_p:
    descriptor = c_void_p()
    shape = (c_longlong(rows), c_longlong(columns), c_longlong(storage.values.shape[1]))
    ok(sparse.musparseCreateDnMat(byref(descriptor), *shape, storage.pointer, TYPES[letter], order))
    return descriptor


KINDS = [
    (False, (False, False), 0),
    (False, (True, True), 1),
    (False, (True, False), 0),
    (True, (False, False), 1),
    (True, (True, True), 0),
]


@every_letter("SpMV of ?: formats, indices, operations")
def spmv(letter: str, dtype: type) -> None:
    handle = new_handle()
    a = entries(dtype, 7, 5)
    for (coo, wide, base), operation in itertools.product(KINDS, (N, T, C)):
        matrix = Matrix(a, letter, coo, wide, base)
        whole = op(a, operation)
        x, y = numbers(dtype, whole.shape[1]), numbers(dtype, whole.shape[0])
        dx, dy = Device(x), Device(y)
        vx, vy = vector(dx, letter), vector(dy, letter)
        two, half = scalar(dtype, 2), scalar(dtype, 0.5)
        size = c_size_t(0)
        common = (matrix.descriptor, vx, half, vy, TYPES[letter], 0)
        ok(sparse.musparseSpMV_bufferSize(handle, operation, two, *common, byref(size)))
        assert size.value > 0
        ok(sparse.musparseSpMV(handle, operation, two, *common, None))
        same(dy.get(), (2 * (whole @ x) + 0.5 * y).astype(dtype))
        # y may hold anything if beta is 0.
        dy = Device(np.full_like(y, np.nan))
        vy = vector(dy, letter)
        common = (matrix.descriptor, vx, scalar(dtype, 0), vy, TYPES[letter], 0)
        ok(sparse.musparseSpMV(handle, operation, two, *common, None))
        same(dy.get(), (2 * (whole @ x)).astype(dtype))
        matrix.destroy()
    ok(sparse.musparseDestroy(handle))


@every_letter("SpMM of ?: orders and operations of the dense matrices")
def spmm(letter: str, dtype: type) -> None:
    handle = new_handle()
    a = entries(dtype, 6, 4)
    operations, orders = (N, T, C), (ROW, COLUMN)
    for operation, operation_b, order_b, order_c in itertools.product(operations, operations, orders, orders):
        coo = order_b == COLUMN and order_c == ROW
        matrix = Matrix(a, letter, coo)
        whole = op(a, operation)
        for width in (3, 19):
            rows, inner = whole.shape
            shape_b = (inner, width) if operation_b == N else (width, inner)
            b = numbers(dtype, *shape_b)
            c = numbers(dtype, rows, width)
            # Rows of the storage are rows or columns of the matrix, and are two elements longer.
            storage_b, storage_c = (
                Device(np.pad(m if order == ROW else m.T.copy(), ((0, 0), (0, 2)), constant_values=7))
                for m, order in ((b, order_b), (c, order_c))
            )
            of_b = dense(storage_b, *shape_b, letter, order_b)
            of_c = dense(storage_c, rows, width, letter, order_c)
            two, kept = scalar(dtype, 2), scalar(dtype, -1)
            common = (
                handle,
                operation,
                operation_b,
                two,
                matrix.descriptor,
                of_b,
                kept,
                of_c,
                TYPES[letter],
                0,
            )
            size = c_size_t(0)
            ok(sparse.musparseSpMM(*common, BUFFER_SIZE, byref(size), None))
            assert size.value > 0
            ok(sparse.musparseSpMM(*common, PREPROCESS, None, None))
            ok(sparse.musparseSpMM(*common, COMPUTE, None, None))
            got = storage_c.get()
            assert (got[:, -2:] == 7).all(), "elements between the columns were written"
            got = np.ascontiguousarray(got[:, :-2] if order_c == ROW else got[:, :-2].T)
            same(got, (2 * (whole @ op(b, operation_b)) - c).astype(dtype))
            ok(sparse.musparseDestroyDnMat(of_b))
            ok(sparse.musparseDestroyDnMat(of_c))
        matrix.destroy()
    ok(sparse.musparseDestroy(handle))


@every_letter("SpGEMM of ?: stages, indices, bases")
def spgemm(letter: str, dtype: type) -> None:
    handle = new_handle()
    a, b = entries(dtype, 7, 5), entries(dtype, 5, 6)
    a[0], b[:, 2] = 0, 0  # the product has an empty row and an empty column
    for wide, base in ((False, 0), (True, 1)):
        index_type, kind = (np.int64, 3) if wide else (np.int32, 2)
        left, right = (
            Matrix(a, letter, wide=(wide, wide)),
            Matrix(b, letter, wide=(wide, wide), base=1 - base),
        )
        starts = Device(np.full(8, -9, index_type))
        product = c_void_p()
        sizes = (c_longlong(7), c_longlong(6), c_longlong(0))
        types = (kind, kind, base, TYPES[letter])
        ok(sparse.musparseCreateCsr(byref(product), *sizes, starts.pointer, None, None, *types))
        common = (handle, N, N, scalar(dtype, 2), left.descriptor, right.descriptor, scalar(dtype, 0))
        common = (*common, product, product, TYPES[letter], 0)
        size = c_size_t(0)
        ok(sparse.musparseSpGEMM(*common, 1, byref(size), None))
        assert size.value > 0
        ok(sparse.musparseSpGEMM(*common, 2, byref(size), None))
        expected = (2 * (a @ b)).astype(dtype)
        pattern = (a != 0).astype(int) @ (b != 0).astype(int) != 0
        rows, columns, nnz = c_longlong(), c_longlong(), c_longlong()
        ok(sparse.musparseSpMatGetSize(product, byref(rows), byref(columns), byref(nnz)))
        assert (rows.value, columns.value, nnz.value) == (7, 6, pattern.sum())
        ok(
            sparse.musparseSpGEMM(*common, 3, byref(size), None), INVALID_POINTER
        )  # without memory for entries
        found, values = Device(np.zeros(nnz.value, index_type)), Device(np.zeros(nnz.value, dtype))
        ok(sparse.musparseCsrSetPointers(product, starts.pointer, found.pointer, values.pointer))
        ok(sparse.musparseSpGEMM(*common, 3, byref(size), None))
        where = np.nonzero(pattern)
        np.testing.assert_array_equal(starts.get() - base, np.concatenate([[0], np.cumsum(pattern.sum(1))]))
        np.testing.assert_array_equal(found.get() - base, where[1])
        same(values.get(), np.ascontiguousarray(expected[where]))
        transposed = (handle, T, *common[2:])
        ok(sparse.musparseSpGEMM(*transposed, 1, byref(size), None), NOT_IMPLEMENTED)
        added = (*common[:6], scalar(dtype, 1), *common[7:])
        ok(sparse.musparseSpGEMM(*added, 1, byref(size), None), NOT_IMPLEMENTED)
        ok(sparse.musparseSpGEMM(*common, 9, byref(size), None), INVALID_VALUE)
        swapped = (*common[:4], right.descriptor, left.descriptor, *common[6:])
        ok(sparse.musparseSpGEMM(*swapped, 1, byref(size), None), INVALID_SIZE)
        ok(sparse.musparseDestroySpMat(product))
    ok(sparse.musparseDestroy(handle))


@check("SpMM with automatic stages and scalars on the device")
def automatic() -> None:
    handle = new_handle()
    a = entries(np.float32, 5, 5)
    matrix = Matrix(a, "S")
    b, c = numbers(np.float32, 5, 4), np.zeros((5, 4), np.float32)
    storage_b, storage_c = Device(b), Device(c)
    of_b, of_c = dense(storage_b, 5, 4, "S", ROW), dense(storage_c, 5, 4, "S", ROW)
    one, zero = Device(np.ones(1, np.float32)), Device(np.zeros(1, np.float32))
    ok(sparse.musparseSetPointerMode(handle, 1))
    size = c_size_t(0)
    common = (handle, N, N, one.pointer, matrix.descriptor, of_b, zero.pointer, of_c, R_32F, 0, AUTO)
    ok(sparse.musparseSpMM(*common, byref(size), None))
    assert size.value > 0 and (storage_c.get() == 0).all(), "the call for the size computed"
    buffer = Device(np.zeros(size.value, np.uint8))
    ok(sparse.musparseSpMM(*common, byref(size), buffer.pointer))
    same(storage_c.get(), a @ b)
    # Entries of the same place are added.
    twice = Device(np.array([1, 2], np.float32))
    index = Device(np.zeros(2, np.int32))
    place = c_void_p()
    sizes = (c_longlong(1), c_longlong(1), c_longlong(2))
    ok(
        sparse.musparseCreateCoo(
            byref(place), *sizes, index.pointer, index.pointer, twice.pointer, 2, 0, R_32F
        )
    )
    result, x = Device(np.zeros(1, np.float32)), Device(np.array([10], np.float32))
    vectors = (vector(x, "S"), zero.pointer, vector(result, "S"))
    ok(sparse.musparseSpMV(handle, N, one.pointer, place, *vectors, R_32F, 0, None))
    assert result.get() == 30


@check("what muSPARSE refuses")
def refusals() -> None:
    handle = new_handle()
    a = entries(np.float32, 4, 3)
    matrix = Matrix(a, "S")
    x, y = Device(np.zeros(3, np.float32)), Device(np.zeros(4, np.float32))
    vx, vy = vector(x, "S"), vector(y, "S")
    one = scalar(np.float32, 1)

    def spmv(h: object, operation: int, alpha: object, m: object, *rest: object) -> None:
        vx, vy, kind, expected = rest
        ok(sparse.musparseSpMV(h, operation, alpha, m, vx, one, vy, kind, 0, None), expected)

    spmv(handle, N, one, matrix.descriptor, vx, vy, R_32F, 0)
    spmv(None, N, one, matrix.descriptor, vx, vy, R_32F, INVALID_HANDLE)
    spmv(handle, 7, one, matrix.descriptor, vx, vy, R_32F, INVALID_VALUE)
    spmv(handle, N, None, matrix.descriptor, vx, vy, R_32F, INVALID_POINTER)
    spmv(handle, N, one, None, vx, vy, R_32F, INVALID_POINTER)
    spmv(handle, N, one, vx, vx, vy, R_32F, INVALID_POINTER)  # a vector is no matrix
    spmv(handle, N, one, matrix.descriptor, vy, vx, R_32F, INVALID_SIZE)
    spmv(handle, N, one, matrix.descriptor, vx, vy, R_64F, NOT_IMPLEMENTED)
    made = c_void_p()
    ok(sparse.musparseCreateDnVec(byref(made), c_longlong(3), x.pointer, R_16F), NOT_IMPLEMENTED)
    ok(sparse.musparseCreateDnVec(byref(made), c_longlong(-1), x.pointer, R_32F), INVALID_SIZE)
    ok(sparse.musparseCreateDnVec(byref(made), c_longlong(3), None, R_32F), INVALID_POINTER)
    shape = (c_longlong(4), c_longlong(3), c_longlong(3))
    ok(sparse.musparseCreateDnMat(byref(made), *shape, x.pointer, R_32F, COLUMN), INVALID_SIZE)
    ok(sparse.musparseCreateDnMat(byref(made), *shape, x.pointer, R_32F, 5), INVALID_VALUE)
    arrays = (matrix.rows.pointer, matrix.columns.pointer, matrix.values.pointer)
    sizes = (c_longlong(4), c_longlong(3), c_longlong(matrix.values.values.size))
    ok(sparse.musparseCreateCsr(byref(made), *sizes, *arrays, 9, 2, 0, R_32F), INVALID_VALUE)
    ok(sparse.musparseCreateCsr(byref(made), *sizes, *arrays, 2, 2, 2, R_32F), INVALID_VALUE)
    ok(sparse.musparseCreateCsr(byref(made), *sizes, None, None, None, 2, 2, 0, R_32F), INVALID_POINTER)
    ok(sparse.musparseSetPointerMode(handle, 3), INVALID_VALUE)
    rows, columns, nnz = c_longlong(), c_longlong(), c_longlong()
    ok(sparse.musparseSpMatGetSize(matrix.descriptor, byref(rows), byref(columns), byref(nnz)))
    assert (rows.value, columns.value, nnz.value) == (4, 3, np.count_nonzero(a))
    version = c_int(0)
    ok(sparse.musparseGetVersion(handle, byref(version)))
    assert version.value > 0
    ok(sparse.musparseDestroy(handle))


assert set(TYPES) == set(LETTERS)
