// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Small dense operands of FLOAT in plain loops: torch's functions take longer to begin than these to end. Only operations
// whose result IEEE 754 fixes to the last bit are here, so that nobody can tell which of the two has computed.
#pragma once

#include <c10/core/Scalar.h>

#include "mudnn_math.h"
#include "support/access.h"

namespace musa_emulator::dnn {

// Whether run_small() does it.
bool is_small(musa::dnn::Unary::Mode mode, const Tensor& out, const Tensor& in);
bool is_small(musa::dnn::Binary::Mode mode, const Tensor& out, const Tensor& left, const Tensor& right);

void run_small(musa::dnn::Unary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& in);
void run_small(
    musa::dnn::Binary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& left,
    const Tensor& right);

} // namespace musa_emulator::dnn
