// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "../extensions.h"

#include <ATen/ops/dot.h>

namespace {

at::Tensor dot(const at::Tensor& a, const at::Tensor& b) {
  check_operands(a, b);
  return at::dot(a.flatten(), b.flatten());
}

} // namespace

TORCH_LIBRARY_IMPL(dot_extension, CPU, m) { m.impl("dot", &dot); }
