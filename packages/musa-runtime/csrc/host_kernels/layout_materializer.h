// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <host_kernels/host_scope.h>

namespace musa_runtime {

// Converts sparse, compressed sparse, quantized and nested tensors between device and host: their strided parts go through
// the scope (aliased or copied), the rest is metadata.
struct LayoutMaterializer {
  static at::Tensor host(HostScope& scope, const at::Tensor& tensor, bool written);
  static at::Tensor device(HostScope& scope, const at::Tensor& result);
  // Assigns the parts and the shape of `host`, after the kernel, to `original`.
  static void write_back(HostScope& scope, const at::Tensor& original, const at::Tensor& host);
};

} // namespace musa_runtime
