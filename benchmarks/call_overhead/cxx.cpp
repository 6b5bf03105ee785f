// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The kernels of stable.cpp, over torch's C++ API. They allocate their result and launch nothing, so only the call is
// measured.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <musa_runtime/op_pack.h>
#include <torch/library.h>

namespace {

at::Tensor result(const at::Tensor& self) { return at::empty_like(self); }
bool is_float(const at::Tensor& self) { return self.scalar_type() == at::kFloat; }

TORCH_LIBRARY(bench_cxx, library) {
  library.def("result(Tensor self) -> Tensor");
  library.def("conditional(Tensor self) -> Tensor");
}

} // namespace

MUSA_OP_PACK(bench_cxx, pack) {
  pack.impl("bench_cxx::result", TORCH_FN(result));
  pack.impl("bench_cxx::conditional", TORCH_FN(result), TORCH_FN(is_float));
  pack.impl("aten::ceil", TORCH_FN(result), TORCH_FN(is_float));
}
