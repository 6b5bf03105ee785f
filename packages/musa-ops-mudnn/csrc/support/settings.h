// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What torch.backends.mudnn sets, for the process.
#pragma once

#include <musa_runtime/mudnn.h>

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

namespace musa_ops_mudnn {

struct Settings {
  bool enabled = true; // else every predicate declines
  bool allow_tf32 = false; // FLOAT products and convolutions may round their operands to TF32
  bool deterministic = false; // decline operations that may sum in any order
};

// Read by kernels without a lock, as torch's own settings are.
inline Settings& settings() {
  static Settings settings;
  return settings;
}

// Whether results must repeat: by torch.backends.mudnn.deterministic or torch.use_deterministic_algorithms. muDNN does not
// document the order in which its operations sum or overwrite.
inline bool must_repeat() {
  return settings().deterministic || at::globalContext().deterministicAlgorithms();
}

// One type for all operations: Convolution's is BatchMatMul's and ScaledDotProductAttention's too.
inline ::musa::dnn::Convolution::ComputeMode compute_mode(at::ScalarType dtype) {
  using ComputeMode = ::musa::dnn::Convolution::ComputeMode;
  const bool reduced = dtype != at::kFloat && dtype != at::kDouble;
  return reduced || settings().allow_tf32 ? ComputeMode::TENSOR : ComputeMode::SCALAR;
}

} // namespace musa_ops_mudnn
