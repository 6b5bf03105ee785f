// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Helper for kernels that need contiguous outputs.
#pragma once

#include <ATen/core/Tensor.h>

#include "engines/aten.h"

namespace musa_ops_ported {

// Calls f(dense), which fills a contiguous tensor: `out` itself, or a temporary that is then copied to `out`.
template <typename F>
void write_contiguous(const at::Tensor& out, const F& f) {
  const at::Tensor dense = out.is_contiguous() ? out : aten::empty_like(out, at::MemoryFormat::Contiguous);
  f(dense);
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
}

} // namespace musa_ops_ported
