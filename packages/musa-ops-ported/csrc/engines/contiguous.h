// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kernels that want dense outputs, whatever the caller's strides.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

namespace musa_ops_ported {

// f(dense) fills a contiguous tensor: `out` itself, or one that is copied to it.
template <typename F>
void write_contiguous(const at::Tensor& out, const F& f) {
  const at::Tensor dense = out.is_contiguous() ? out : at::empty_like(out, at::MemoryFormat::Contiguous);
  f(dense);
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
}

} // namespace musa_ops_ported
