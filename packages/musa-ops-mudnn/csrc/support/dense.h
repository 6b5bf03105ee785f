// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The short way past torch's iterator. Where all tensors are of one floating dtype, one shape and one dense order, the
// output is too, and what the iterator would find out in a thousand instructions is known.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/musa/EmptyTensor.h>

#include <algorithm>
#include <string_view>

#include "support/predicates.h"

namespace musa_ops_mudnn {

// What a kernel needs to know of the iterator, as its first argument: the dtype to compute in. One that takes Common
// answers in that dtype, one that takes Compared in BOOL, and both work element by element.
struct Common {
  at::ScalarType dtype;
  at::ScalarType answer() const {
    return dtype;
  }
};
struct Compared {
  at::ScalarType dtype;
  static at::ScalarType answer() {
    return at::kBool;
  }
};

namespace detail {

struct DenseOperands {
  const at::Tensor* like = nullptr;
  const at::Tensor* out = nullptr;
  bool fits = true;
  bool numbers = false;
  bool cpu_number = false;

  // Beside a number the iterator chooses strides of its own for dimensions of size 1.
  const at::Tensor* found() const {
    const bool sized = like != nullptr && numbers &&
        std::any_of(like->sizes().begin(), like->sizes().end(), [](int64_t size) { return size == 1; });
    return fits && !sized ? like : nullptr;
  }

  void look_at(const at::Tensor& tensor) {
    if (is_cpu_number(tensor)) {
      // It bends to the dtype of tensors with dimensions. Which operators take booleans, the meta functions say. The
      // iterator raises for a second number in host memory.
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
    // Parts in common are for the iterator to refuse.
    fits = fits && (out == nullptr || out->const_data_ptr() == tensor.const_data_ptr() || !out->is_alias_of(tensor));
  }
  void look_at(const at::Scalar& number) {
    fits = fits && !number.isComplex() && !number.isBoolean();
    numbers = true;
  }
  void look_at(const std::optional<std::string_view>& choice) {
    fits = fits && !choice.has_value(); // whether it is a known one, the meta function says
  }
  void look_at(const std::optional<at::Tensor>& /*tensor*/) {
    fits = false;
  }
  void look_at(const std::optional<at::Scalar>& /*number*/) {
    fits = false;
  }
  void look_at(std::string_view /*choice*/) {}
  void look_at(double /*number*/) {}
  void look_at(int64_t /*number*/) {}
  void look_at(bool flag) {
    fits = fits && !flag; // what goes with it, the meta function says
  }
};

} // namespace detail

// The operand that the output is like; null where the iterator has to look.
template <typename... Args>
const at::Tensor* dense_operand(const Args&... args) {
  detail::DenseOperands operands;
  (operands.look_at(args), ...);
  return operands.found();
}

// The same for an output that is given, as long as it is what the iterator would make.
template <typename... Args>
const at::Tensor* dense_operand_for(const at::Tensor& out, const Args&... args) {
  detail::DenseOperands operands{.out = &out};
  (operands.look_at(args), ...);
  const at::Tensor* like = operands.found();
  const bool fits = like != nullptr &&
      (&out == like ||
       (out.sizes() == like->sizes() && out.strides() == like->strides() && out.device() == like->device()));
  return fits ? like : nullptr;
}

// A tensor of another dtype with the shape and the order of a dense one.
inline at::Tensor empty_dense(const at::Tensor& like, at::ScalarType dtype) {
  const c10::DeviceIndex device = like.device().index();
  // The iterator's order of choices: strides of dimensions of size 1 are kept by the last one only.
  return like.is_contiguous() ? at::detail::empty_musa(like.sizes(), dtype, device)
      : like.is_contiguous(at::MemoryFormat::ChannelsLast)
      ? at::detail::empty_musa(like.sizes(), dtype, device, at::MemoryFormat::ChannelsLast)
      : at::detail::empty_strided_musa(like.sizes(), like.strides(), dtype, device);
}

} // namespace musa_ops_mudnn
