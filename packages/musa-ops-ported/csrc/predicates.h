// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Predicates for ops.yaml: an operator is served only if its predicate over the arguments returns true.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace musa_ops_ported {

// Whether the first tensor has a floating point dtype.
template <typename... Rest>
bool floating(const at::Tensor& first, const Rest&...) {
  return at::isFloatingType(first.scalar_type());
}

// Whether the first tensor does not have a complex dtype.
template <typename... Rest>
bool real(const at::Tensor& first, const Rest&...) {
  return !at::isComplexType(first.scalar_type());
}

inline bool has_no_elements(const at::Tensor& tensor) { return tensor.numel() == 0; }
template <typename T>
bool has_no_elements(const T& /*no tensor*/) {
  return false;
}
// Whether BLAS libraries do not support the matrices: integers, complex numbers, double precision, and operands
// without elements. For other dtypes the libraries are faster, and round as the CPU does.
template <typename... Rest>
bool declined_by_libraries(const at::Tensor& first, const Rest&... rest) {
  const at::ScalarType dtype = first.scalar_type();
  const bool whole = at::isIntegralType(dtype, /*includeBool=*/false) && !at::isBarebonesUnsignedType(dtype);
  return whole || dtype == at::kDouble || at::isComplexType(dtype) ||
      (at::isFloatingType(dtype) && (has_no_elements(first) || (has_no_elements(rest) || ...)));
}

// Whether linalg.lstsq uses torch.cuda's driver. The others exist for the CPU alone.
template <typename... Outs>
bool by_reflectors(
    const at::Tensor&, const at::Tensor&, std::optional<double>, std::optional<std::string_view> driver,
    const Outs&...) {
  return !driver.has_value() || *driver == "gels";
}

// Whether all tensors have memory. torch's dispatcher passes zero tensors, which have none, to dot and vdot.
template <typename... Tensors>
bool stored(const Tensors&... tensors) {
  return !(tensors._is_zerotensor() || ...);
}

// For kernels whose threads add or write to the same element in any order, which torch.use_deterministic_algorithms
// forbids.
template <typename... Args>
bool unordered(const Args&...) {
  return !at::globalContext().deterministicAlgorithms();
}

// The same for an operator that writes to its first tensor, which may be on the host: torch's host code does not
// check this.
template <typename... Rest>
bool unordered_on_device(const at::Tensor& first, const Rest&... rest) {
  return first.is_privateuseone() && unordered(first, rest...);
}

// Whether all tensors are on the device, for operators whose host code in torch does not check what it writes to.
inline bool is_on_device(const at::Tensor& tensor) { return tensor.is_privateuseone(); }
template <typename T>
bool is_on_device(const T& /*no tensor*/) {
  return true;
}
template <typename... Args>
bool on_device_alone(const Args&... args) {
  return (is_on_device(args) && ...);
}

} // namespace musa_ops_ported
