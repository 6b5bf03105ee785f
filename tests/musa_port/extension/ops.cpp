// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <torch/extension.h>

at::Tensor dot_cuda(const at::Tensor& a, const at::Tensor& b);

at::Tensor dot(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.is_cuda(), "a must be a CUDA tensor");
  TORCH_CHECK(a.sizes() == b.sizes(), "sizes differ");
  return dot_cuda(a.contiguous(), b.contiguous());
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("dot", &dot, "dot product");
}
