// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The settings of torch.backends.mudnn, one set per process.
#pragma once

#include <musa_runtime/mudnn.h>

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

namespace musa_ops_mudnn {

struct Settings {
  bool enabled = true; // if false, every predicate declines
  bool allow_tf32 = false; // FLOAT products and convolutions may round their operands to TF32
  bool deterministic = false; // decline operations whose order of summation is undefined
};

// Read by kernels without a lock, like torch's own settings.
inline Settings& settings() {
  static Settings settings;
  return settings;
}

// Whether results must be reproducible: torch.backends.mudnn.deterministic or torch.use_deterministic_algorithms is
// set. The order in which muDNN's operations add or overwrite is not documented.
inline bool must_repeat() { return settings().deterministic || at::globalContext().deterministicAlgorithms(); }

// Whether FLOAT matrix products may round their operands to TF32: set by torch.backends.mudnn, or by torch's own
// setting, which torch.backends.musa.matmul.allow_tf32 and torch.set_float32_matmul_precision write.
// A decomposition forbids it for its own products.
inline bool products_may_round() {
  return !at::NoTF32Guard::should_disable_tf32() &&
      (settings().allow_tf32 ||
       at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) ==
           at::Float32Precision::TF32);
}

// The same for FLOAT convolutions: set by torch.backends.mudnn, or by torch.backends.fp32_precision. Not by torch's
// setting for CUDA convolutions, whose default is TF32.
inline bool convolutions_may_round() {
  return settings().allow_tf32 ||
      at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::ALL) == at::Float32Precision::TF32;
}

// All operations share this type: BatchMatMul and ScaledDotProductAttention use Convolution's.
using ComputeMode = ::musa::dnn::Convolution::ComputeMode;

inline ComputeMode compute_mode(at::ScalarType dtype, bool allow_tf32 = settings().allow_tf32) {
  const bool reduced = dtype != at::kFloat && dtype != at::kDouble;
  return reduced || allow_tf32 ? ComputeMode::TENSOR : ComputeMode::SCALAR;
}

} // namespace musa_ops_mudnn
