// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>

#include "kernels.h"

namespace musa_ops_ported {

// Vectors without elements have no say in the shape.
void cat(
    const at::ITensorListRef& tensors, int64_t dim, int64_t, bool, bool, bool, at::MemoryFormat,
    const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  int64_t start = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) {
      continue;
    }
    out.narrow(dim, start, tensor.size(dim)).copy_(tensor);
    start += tensor.size(dim);
  }
}

} // namespace musa_ops_ported
