// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The dtypes that the operators support, and the dtypes that they compute in.
#pragma once

#include <ATen/Dispatch_v2.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

namespace musa_ops_vision {

// Half types compute and accumulate in float32.
inline at::ScalarType accumulated(at::ScalarType dtype) { return at::toOpMathType(dtype); }

} // namespace musa_ops_vision

// Runs the block with scalar_t and op_t, the dtype that half types compute in.
#define MUSA_VISION_DISPATCH(DTYPE, NAME, ...) \
  AT_DISPATCH_V2( \
      DTYPE, NAME, AT_WRAP([&] { \
        using op_t = at::opmath_type<scalar_t>; \
        __VA_ARGS__ \
      }), \
      AT_EXPAND(AT_FLOATING_TYPES), at::kHalf, at::kBFloat16)
