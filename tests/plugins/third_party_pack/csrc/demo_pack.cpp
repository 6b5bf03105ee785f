// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// A pack's whole C++ side: a schema of its own, kernels, predicates, and their declaration.

#include <ATen/ATen.h>
#include <musa_runtime/op_pack.h>
#include <torch/library.h>

namespace {

at::Tensor relu(const at::Tensor& self) {
  return at::clamp_min(self, 0);
}

// Integers are left to the next provider.
bool serves_relu(const at::Tensor& self) {
  return at::isFloatingType(self.scalar_type());
}

at::Tensor scale_shift(const at::Tensor& self, double scale, double shift) {
  return self * scale + shift;
}

TORCH_LIBRARY(musa_demo, library) {
  library.def("scale_shift(Tensor self, float scale, float shift) -> Tensor");
}

} // namespace

MUSA_OP_PACK(demo, pack) {
  pack.impl("aten::relu", TORCH_FN(relu), TORCH_FN(serves_relu));
  pack.impl("musa_demo::scale_shift", TORCH_FN(scale_shift));
}
