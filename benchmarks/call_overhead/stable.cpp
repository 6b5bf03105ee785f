// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The kernels of cxx.cpp, over torch's stable ABI.
#include <musa_runtime/stable_pack.h>

namespace {

using torch::stable::Tensor;

Tensor result(const Tensor& self) { return musa_runtime::stable::new_empty(self, self.sizes()); }
bool is_float(const Tensor& self) { return self.scalar_type() == torch::headeronly::ScalarType::Float; }

} // namespace

STABLE_TORCH_LIBRARY(bench_stable, library) {
  library.def("result(Tensor self) -> Tensor");
  library.def("conditional(Tensor self) -> Tensor");
}

MUSA_STABLE_OP_PACK(bench_stable, pack) {
  pack.impl<&result>("bench_stable::result");
  pack.impl<&result, &is_float>("bench_stable::conditional");
  pack.impl<&result, &is_float>("aten::floor");
}
