// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Fast path without torch's TensorIterator. If all tensors have one floating dtype, one shape and one dense memory
// order, the output has them too, and the iterator, which takes about a thousand instructions, is not needed.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/musa/EmptyTensor.h>

#include <algorithm>
#include <string_view>

#include "support/predicates.h"

namespace musa_ops_mudnn {

// First argument of a kernel instead of the iterator: the dtype of the computation. The result of a kernel that takes
// Common has this dtype, that of a kernel that takes Compared is BOOL; both are elementwise.
struct Common {
  at::ScalarType dtype;
  at::ScalarType answer() const { return dtype; }
};
struct Compared {
  at::ScalarType dtype;
  static at::ScalarType answer() { return at::kBool; }
};

namespace detail {

struct DenseOperands {
  const at::Tensor* like = nullptr;
  const at::Tensor* out = nullptr;
  bool fits = true;
  bool numbers = false;
  bool cpu_number = false;

  // With a number operand, the iterator chooses other strides for dimensions of size 1.
  const at::Tensor* found() const {
    const bool sized = like != nullptr && numbers &&
        std::any_of(like->sizes().begin(), like->sizes().end(), [](int64_t size) { return size == 1; });
    return fits && !sized ? like : nullptr;
  }

  void add(const at::Tensor& tensor) {
    if (is_cpu_number(tensor)) {
      // A 0-dim tensor is promoted to the dtype of the dimensioned operands. The meta functions check whether an
      // operator supports booleans. The iterator raises an error for a second CPU number.
      fits = fits && contains(number_types, tensor.scalar_type()) && !cpu_number;
      cpu_number = true;
      numbers = true;
    } else if (!fits) {
      return;
    } else if (like == nullptr) {
      like = &tensor;
      fits = contains(float_types, tensor.scalar_type()) && tensor.dim() > 0 && tensor.is_non_overlapping_and_dense();
    } else {
      fits = &tensor == like ||
          (tensor.scalar_type() == like->scalar_type() && tensor.sizes() == like->sizes() &&
           tensor.strides() == like->strides());
    }
    // For partially overlapping memory the iterator raises an error.
    fits = fits && (out == nullptr || out->const_data_ptr() == tensor.const_data_ptr() || !out->is_alias_of(tensor));
  }
  void add(const at::Scalar& number) {
    fits = fits && !number.isComplex() && !number.isBoolean();
    numbers = true;
  }
  void add(const std::optional<std::string_view>& choice) {
    fits = fits && !choice.has_value(); // the meta function checks its value
  }
  void add(const std::optional<at::Tensor>& /*tensor*/) { fits = false; }
  void add(const std::optional<at::Scalar>& /*number*/) { fits = false; }
  void add(std::string_view /*choice*/) {}
  void add(double /*number*/) {}
  void add(int64_t /*number*/) {}
  void add(bool flag) {
    fits = fits && !flag; // the meta function handles it
  }
};

} // namespace detail

// Returns the operand whose shape and strides the output has; nullptr if the iterator is needed.
template <typename... Args>
const at::Tensor* dense_operand(const Args&... args) {
  detail::DenseOperands operands;
  (operands.add(args), ...);
  return operands.found();
}

// The same for a given output, whose shape and strides must be those that the iterator would choose.
template <typename... Args>
const at::Tensor* dense_operand_for(const at::Tensor& out, const Args&... args) {
  detail::DenseOperands operands{.out = &out};
  (operands.add(args), ...);
  const at::Tensor* like = operands.found();
  const bool fits = like != nullptr &&
      (&out == like ||
       (out.sizes() == like->sizes() && out.strides() == like->strides() && out.device() == like->device()));
  return fits ? like : nullptr;
}

// Returns a tensor of another dtype, with the shape and memory order of a dense tensor.
inline at::Tensor empty_dense(const at::Tensor& like, at::ScalarType dtype) {
  const c10::DeviceIndex device = like.device().index();
  // Checked in the iterator's order: only the last case keeps the strides of dimensions of size 1.
  return like.is_contiguous() ? at::detail::empty_musa(like.sizes(), dtype, device)
      : like.is_contiguous(at::MemoryFormat::ChannelsLast)
      ? at::detail::empty_musa(like.sizes(), dtype, device, at::MemoryFormat::ChannelsLast)
      : at::detail::empty_strided_musa(like.sizes(), like.strides(), dtype, device);
}

} // namespace musa_ops_mudnn
