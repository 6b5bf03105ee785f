// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Plain loops for small operands, dense or one element that is broadcast: torch's functions take longer to start than
// these take to run. Only for operations whose results are exactly defined, so that both implementations return the same
// bits.
#pragma once

#include <c10/core/Scalar.h>

#include "mudnn_math.h"
#include "support/access.h"

namespace musa_emulator::dnn {

using musa::dnn::Tensor;

// Whether run_small() supports the call.
bool is_small(musa::dnn::Unary::Mode mode, const Tensor& out, const Tensor& in);
bool is_small(musa::dnn::Binary::Mode mode, const Tensor& out, const Tensor& left, const Tensor& right);

// Fills FLOAT memory with any number, and memory of other types with 0.
bool is_small(const c10::Scalar& value, const Tensor& out);
void fill_small(const c10::Scalar& value, const Tensor& out);

// Writes the index of the largest or smallest element of each row (the last dimension): the first of equal elements or
// the first NaN, as in torch. For FLOAT rows with up to a few thousand elements.
bool is_small_extreme(const Tensor& positions, const Tensor& in, int64_t dim);
void find_small(bool largest, const Tensor& positions, const Tensor& in);

// Copies slices of params, of shape (outer, size, bytes), by indices into the second dimension. is_small_pick() returns
// whether the copy is small. pick_small() returns false, with some slices copied, if an index is out of range.
bool is_small_pick(int64_t outer, int64_t picks, int64_t bytes);
bool pick_small(
    const Tensor& out, const Tensor& indices, const Tensor& params, int64_t outer, int64_t size, int64_t bytes);

// Copies a row to each row of a matrix. Returns false, without a copy, if the operands are not small.
bool repeat_small(const Tensor& matrix, const Tensor& row);

void run_small(musa::dnn::Unary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& in);
void run_small(
    musa::dnn::Binary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& left, const Tensor& right);

} // namespace musa_emulator::dnn
