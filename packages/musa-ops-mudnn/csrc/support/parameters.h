// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Predicates for parameters that are numbers.
#pragma once

#include <c10/core/Scalar.h>

#include <cmath>
#include <limits>

namespace musa_ops_mudnn {

// Whether muDNN takes the number as a parameter. torch raises an error for a finite number that FLOAT cannot represent;
// muDNN would compute with another one, or fail on the device.
inline bool is_parameter(const at::Scalar& value) {
  if (value.isComplex()) {
    return false;
  }
  const double number = value.isFloatingPoint() ? std::abs(value.toDouble()) : 0;
  return !(number > std::numeric_limits<float>::max()) || std::isinf(number);
}

} // namespace musa_ops_mudnn
