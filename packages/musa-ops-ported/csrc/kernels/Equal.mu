// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/eq.h>

#include "kernels/Equal.h"

namespace musa_ops_ported {

bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(
      self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
      other.device());
  if (!self.sizes().equals(other.sizes())) {
    return false;
  }
  return self.numel() == 0 || at::eq(self, other).all().item<bool>();
}

} // namespace musa_ops_ported
