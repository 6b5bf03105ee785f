// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/pixel_shuffle_native.h>
#include <ATen/ops/pixel_unshuffle_native.h>

#include "engines/aten.h"
#include "kernels/TensorShape.h"

namespace musa_ops_ported {

// Empty vectors are skipped, as in torch, regardless of their shape.
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

at::Tensor narrow_copy(const at::Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return self.narrow(dim, start, length).clone(at::MemoryFormat::Contiguous);
}

at::Tensor& narrow_copy_out(const at::Tensor& self, int64_t dim, int64_t start, int64_t length, at::Tensor& out) {
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(), "narrow_copy: the output has dtype ", out.scalar_type(),
      ", and the input ", self.scalar_type());
  const at::Tensor part = self.narrow(dim, start, length);
  aten::resize_output(out, part.sizes());
  return out.copy_(part);
}

at::Tensor pixel_shuffle(const at::Tensor& self, int64_t upscale_factor) {
  const at::Tensor result = at::native::math_pixel_shuffle(self, upscale_factor);
  return self.numel() == 0 ? result : result.contiguous(self.suggest_memory_format());
}

// A tensor without elements keeps its shape, as on the CPU.
at::Tensor pixel_unshuffle(const at::Tensor& self, int64_t downscale_factor) {
  const at::Tensor result = at::native::math_pixel_unshuffle(self, downscale_factor);
  return self.numel() == 0 ? self.clone() : result.contiguous(self.suggest_memory_format());
}

} // namespace musa_ops_ported
