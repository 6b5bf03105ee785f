// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "scaled_relu.cuh"

#include <torch/library.h>

#ifndef ARCH
#error "the options of mcc are missing"
#endif

TORCH_LIBRARY(scaled_relu, m) {
  m.def("forward(Tensor x, float scale) -> Tensor", &scaled_relu_forward);
  m.def("arch() -> int", [] { return int64_t{ARCH}; });
}
