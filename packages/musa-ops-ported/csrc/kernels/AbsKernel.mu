// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs_native.h>

#include "kernels/AbsKernel.h"

namespace musa_ops_ported {

// abs and abs_ are served here because torch composes them from abs.out: another pack may serve them for some dtypes
// only, and calls that it declines must still find a kernel.
at::Tensor abs(const at::Tensor& self) { return at::native::abs(self); }
at::Tensor& abs_(at::Tensor& self) { return at::native::abs_(self); }

} // namespace musa_ops_ported
