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

// Whether products of FLOAT may round their operands to TF32: by torch.backends.mudnn, or by torch's own setting, which
// torch.backends.musa.matmul.allow_tf32 and torch.set_float32_matmul_precision write.
inline bool products_may_round() {
  return settings().allow_tf32 ||
      at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) == at::Float32Precision::TF32;
}

// Whether convolutions of FLOAT may: by torch.backends.mudnn, or by torch.backends.fp32_precision. Not by torch's setting for
// CUDA's convolutions, whose default is TF32.
inline bool convolutions_may_round() {
  return settings().allow_tf32 ||
      at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::ALL) == at::Float32Precision::TF32;
}

// One type for all operations: Convolution's is BatchMatMul's and ScaledDotProductAttention's too.
using ComputeMode = ::musa::dnn::Convolution::ComputeMode;

inline ComputeMode compute_mode(at::ScalarType dtype, bool allow_tf32 = settings().allow_tf32) {
  const bool reduced = dtype != at::kFloat && dtype != at::kDouble;
  return reduced || allow_tf32 ? ComputeMode::TENSOR : ComputeMode::SCALAR;
}

} // namespace musa_ops_mudnn
