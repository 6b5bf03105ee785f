// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <host_kernels/host_scope.h>

namespace musa_runtime {

// Sparse, compressed sparse, quantized and nested tensors between device and host: their strided parts go through the
// scope (aliased or copied), the rest is metadata.
struct LayoutMaterializer {
  static at::Tensor host(HostScope& scope, const at::Tensor& tensor, bool written);
  static at::Tensor device(HostScope& scope, const at::Tensor& result);
  // Gives `original` the parts and shape that the kernel left in `host`.
  static void write_back(HostScope& scope, const at::Tensor& original, const at::Tensor& host);
};

} // namespace musa_runtime
