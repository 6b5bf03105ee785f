// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Cubic convolution (R. Keys: Cubic convolution interpolation for digital image processing, 1981): piecewise cubic
// polynomials of the distance from a sample, 1 at that sample and 0 at all others, with a parameter for the slope.
#pragma once

#include <c10/macros/Macros.h>

#include <cmath>

namespace musa_ops_ported {

// Factored at its zeros, which keeps weights near them accurate.
template <typename T>
C10_HOST_DEVICE T cubic_weight(T distance, T a) {
  const T x = std::abs(distance);
  if (x < 1) {
    return (x - 1) * (((a + 2) * x - 1) * x - 1);
  }
  return x >= 2 ? T(0) : a * (x - 1) * (x - 2) * (x - 2); // NaN stays NaN
}

// The derivative with respect to the distance.
template <typename T>
C10_HOST_DEVICE T cubic_slope(T distance, T a) {
  const T x = std::abs(distance);
  const T slope = x < 1 ? x * (3 * (a + 2) * x - 2 * (a + 3)) : x >= 2 ? T(0) : a * (x - 2) * (3 * x - 4);
  return distance < 0 ? -slope : slope;
}

} // namespace musa_ops_ported
