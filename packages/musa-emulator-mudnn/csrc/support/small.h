// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Small dense operands in plain loops: torch's functions take longer to begin than these to end. Only operations whose
// result is fixed to the last bit are here, so that it does not depend on which of the two computes.
#pragma once

#include <c10/core/Scalar.h>

#include "mudnn_math.h"
#include "support/access.h"

namespace musa_emulator::dnn {

// Whether run_small() does it.
bool is_small(musa::dnn::Unary::Mode mode, const Tensor& out, const Tensor& in);
bool is_small(musa::dnn::Binary::Mode mode, const Tensor& out, const Tensor& left, const Tensor& right);

// Fill with 0, of any type.
bool is_small(const c10::Scalar& value, const Tensor& out);
void zero_small(const Tensor& out);

// The position of the largest or smallest element of each row, the last dimension. The first of those that are equal, or of
// the nan, as in torch. Rows of one FLOAT to a few thousand.
bool is_small_extreme(const Tensor& positions, const Tensor& in, int64_t dim);
void find_small(bool largest, const Tensor& positions, const Tensor& in);

// Slices of params, (outer, size, bytes), by the indices of its second dimension. Whether copying them is little work; and
// false, with some of them copied, if an index is out of range.
bool is_small_pick(int64_t outer, int64_t picks, int64_t bytes);
bool pick_small(const Tensor& out, const Tensor& indices, const Tensor& params, int64_t outer, int64_t size, int64_t bytes);

void run_small(musa::dnn::Unary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& in);
void run_small(
    musa::dnn::Binary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& left,
    const Tensor& right);

} // namespace musa_emulator::dnn
