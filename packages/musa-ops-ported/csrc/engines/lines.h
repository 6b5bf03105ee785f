// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A tensor viewed as lines along one dimension, for scans, sorts and softmax.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/WrapDimMinimal.h>

#include <cstdint>

namespace musa_ops_ported {

// Element k of line n of a contiguous tensor is at start(n) + k * stride.
struct Lines {
  int64_t count = 1, size = 1, stride = 1;

  Lines(const at::Tensor& tensor, int64_t dimension) {
    if (tensor.dim() == 0) {
      return;
    }
    const int64_t dim = at::maybe_wrap_dim(dimension, tensor.dim());
    size = tensor.size(dim);
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      if (d != dim) {
        count *= tensor.size(d);
      }
      if (d > dim) {
        stride *= tensor.size(d);
      }
    }
  }
  C10_HOST_DEVICE int64_t start(int64_t line) const { return line / stride * stride * size + line % stride; }
};

} // namespace musa_ops_ported
