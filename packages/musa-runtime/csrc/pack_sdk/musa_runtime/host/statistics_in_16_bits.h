// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

// Layer and batch norm of 16-bit inputs save mean and rstd in float32, as torch.cuda and torch's fake kernels do: rounded to 16
// bits, they make the gradients of short rows wrong. torch's CPU kernels save and read them in the dtype of the parameters.
//
// Each predicate returns whether torch's CPU kernel would keep the statistics of this call in 16 bits. Calls for which it does
// are declined by the provider "host" (the generated kernels of musa-ops-host name these predicates), and computed in float32 by compositions of
// the provider "runtime", which also rank before "host-copy". They have the names of their operators' C++ functions.

namespace musa_runtime::statistics_in_16_bits {

using at::Tensor;
using Optional = std::optional<Tensor>;
inline const Tensor* given(const Tensor& tensor) { return tensor.defined() ? &tensor : nullptr; }
inline const Tensor* given(const Optional& tensor) { return tensor.has_value() ? given(*tensor) : nullptr; }

template <typename OptionalTensor>
bool has_dtype(const OptionalTensor& tensor, at::ScalarType dtype) {
  const Tensor* const present = given(tensor);
  return present != nullptr && present->scalar_type() == dtype;
}

// Whether torch's CPU kernel would keep the statistics of this input in 16 bits: it does unless the weight is float32, and
// refuses statistics in float32 without a float32 weight. Parameters of other dtypes are left to its error.
template <typename Weight, typename... Others>
bool in_16_bits(const Tensor& input, const Weight& weight, const Others&... others) {
  const at::ScalarType dtype = input.scalar_type();
  if (C10_LIKELY(dtype != at::kHalf && dtype != at::kBFloat16)) {
    return false;
  }
  const auto fits = [dtype](const auto& tensor) {
    return given(tensor) == nullptr || has_dtype(tensor, dtype) || has_dtype(tensor, at::kFloat);
  };
  return fits(weight) && (fits(others) && ...) && (!has_dtype(weight, at::kFloat) || (has_dtype(others, dtype) || ...));
}

inline bool native_layer_norm(
    const Tensor& input, at::IntArrayRef /*normalized_shape*/, const Optional& weight, const Optional& bias,
    double /*eps*/) {
  return in_16_bits(input, weight, bias);
}

inline bool native_layer_norm_backward(
    const Tensor& /*grad_out*/, const Tensor& input, at::IntArrayRef /*normalized_shape*/, const Tensor& mean,
    const Tensor& rstd, const Optional& weight, const Optional& bias, std::array<bool, 3> /*output_mask*/) {
  return in_16_bits(input, weight, bias, mean, rstd);
}

inline bool native_batch_norm(
    const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
    const Optional& running_var, bool /*training*/, double /*momentum*/, double /*eps*/) {
  return in_16_bits(input, weight, bias, running_mean, running_var);
}

inline bool native_batch_norm_out(
    const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
    const Optional& running_var, bool /*training*/, double /*momentum*/, double /*eps*/, Tensor& /*out*/,
    Tensor& /*save_mean*/, Tensor& /*save_invstd*/) {
  return in_16_bits(input, weight, bias, running_mean, running_var);
}

inline bool _native_batch_norm_legit(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    bool /*training*/, double /*momentum*/, double /*eps*/) {
  return in_16_bits(input, weight, bias, running_mean, running_var);
}

inline bool _native_batch_norm_legit_out(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    bool /*training*/, double /*momentum*/, double /*eps*/, Tensor& /*out*/, Tensor& /*save_mean*/,
    Tensor& /*save_invstd*/) {
  return in_16_bits(input, weight, bias, running_mean, running_var);
}

inline bool _native_batch_norm_legit_no_stats(
    const Tensor& input, const Optional& weight, const Optional& bias, bool /*training*/, double /*momentum*/,
    double /*eps*/) {
  return in_16_bits(input, weight, bias);
}

inline bool _native_batch_norm_legit_no_stats_out(
    const Tensor& input, const Optional& weight, const Optional& bias, bool /*training*/, double /*momentum*/,
    double /*eps*/, Tensor& /*out*/, Tensor& /*save_mean*/, Tensor& /*save_invstd*/) {
  return in_16_bits(input, weight, bias);
}

inline bool _batch_norm_with_update(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    double /*momentum*/, double /*eps*/) {
  return in_16_bits(input, weight, bias, running_mean, running_var);
}

inline bool _batch_norm_with_update_out(
    const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean, Tensor& running_var,
    double /*momentum*/, double /*eps*/, Tensor& /*out*/, Tensor& /*save_mean*/, Tensor& /*save_invstd*/,
    Tensor& /*reserve*/) {
  return in_16_bits(input, weight, bias, running_mean, running_var);
}

inline bool native_batch_norm_backward(
    const Tensor& /*grad_out*/, const Tensor& input, const Optional& weight, const Optional& running_mean,
    const Optional& running_var, const Optional& save_mean, const Optional& save_invstd, bool train, double /*eps*/,
    std::array<bool, 3> /*output_mask*/) {
  return train ? in_16_bits(input, weight, save_mean, save_invstd)
               : in_16_bits(input, weight, running_mean, running_var);
}

inline bool batch_norm_backward(
    const Tensor& /*grad_out*/, const Tensor& input, const Tensor& weight, const Optional& running_mean,
    const Optional& running_var, const Optional& save_mean, const Optional& save_var, bool update, double /*eps*/,
    std::array<bool, 3> /*output_mask*/, const Tensor& /*reserve*/) {
  return update ? in_16_bits(input, weight, save_mean, save_var) : in_16_bits(input, weight, running_mean, running_var);
}

} // namespace musa_runtime::statistics_in_16_bits
