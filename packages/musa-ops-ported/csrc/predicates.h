// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What ops.yaml may ask before an operator is served: functions over its arguments.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

namespace musa_ops_ported {

// The first tensor is of a floating point dtype.
template <typename... Rest>
bool floating(const at::Tensor& first, const Rest&...) {
  return at::isFloatingType(first.scalar_type());
}

// The first tensor is not of a complex dtype.
template <typename... Rest>
bool real(const at::Tensor& first, const Rest&...) {
  return !at::isComplexType(first.scalar_type());
}

inline bool has_no_elements(const at::Tensor& tensor) {
  return tensor.numel() == 0;
}
template <typename T>
bool has_no_elements(const T& /*no tensor*/) {
  return false;
}
// Matrices that libraries of matrix products decline: integers, complex numbers, double precision, and of any dtype those
// without elements. In the others' dtypes the libraries are faster, and their roundings are those of the CPU.
template <typename... Rest>
bool declined_by_libraries(const at::Tensor& first, const Rest&... rest) {
  const at::ScalarType dtype = first.scalar_type();
  const bool whole = at::isIntegralType(dtype, /*includeBool=*/false) && !at::isBarebonesUnsignedType(dtype);
  return whole || dtype == at::kDouble || at::isComplexType(dtype) ||
      (at::isFloatingType(dtype) && (has_no_elements(first) || (has_no_elements(rest) || ...)));
}

// The first tensor's matrices have few enough rows for one block to decompose them: beyond, LAPACK on copies is faster.
template <typename... Rest>
bool small_matrices(const at::Tensor& first, const Rest&...) {
  constexpr int64_t kMostRows = 512;
  return first.dim() < 2 || first.size(-2) <= kMostRows;
}

// Threads may add or write to one element in any order: torch.use_deterministic_algorithms forbids it.
template <typename... Args>
bool unordered(const Args&...) {
  return !at::globalContext().deterministicAlgorithms();
}

// The same for an operator that writes to its first tensor, which may be the host's: torch's host code does not refuse it.
template <typename... Rest>
bool unordered_on_device(const at::Tensor& first, const Rest&... rest) {
  return first.is_privateuseone() && unordered(first, rest...);
}

// All tensors are on the device. For operators whose host code of torch does not check what it writes.
inline bool is_on_device(const at::Tensor& tensor) {
  return tensor.is_privateuseone();
}
template <typename T>
bool is_on_device(const T& /*no tensor*/) {
  return true;
}
template <typename... Args>
bool on_device_alone(const Args&... args) {
  return (is_on_device(args) && ...);
}

} // namespace musa_ops_ported
