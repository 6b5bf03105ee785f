// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs_native.h>

#include "kernels.h"

namespace musa_ops_ported {

// torch composes these two of abs.out. Other packs offer them for some dtypes, and what they decline comes here.
at::Tensor abs(const at::Tensor& self) {
  return at::native::abs(self);
}
at::Tensor& abs_(at::Tensor& self) {
  return at::native::abs_(self);
}

} // namespace musa_ops_ported
