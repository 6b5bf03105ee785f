// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <ATen/musa/EmptyTensor.h>
#include <c10/musa/MUSACompat.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Turns one of torch's structured operators into the forms that a pack declares:
//
//   musa_runtime::Outputs<at::meta::structured_mm, 1> op;
// for out= and in place; empty in the functional form
//   op.meta(self, other);                 // makes, checks or resizes the output
//   kernel(self, other, op.maybe_get_output(0));
//   op.finish();

namespace musa_runtime {

// Outputs as a meta function requests them: new, or passed by the caller.
template <typename Meta, size_t N>
struct Outputs final : Meta {
  static constexpr bool iterates = std::is_base_of_v<at::TensorIteratorBase, Meta>;

  // Given outputs; none in the functional form.
  std::array<const at::Tensor*, N> given{};
  std::array<at::Tensor, N> made{}; // new outputs, or replacements of outputs whose strides do not fit
  bool in_place = false;

  const at::Tensor& maybe_get_output(int64_t i) override {
    const auto at = static_cast<size_t>(i);
    return made[at].defined() || given[at] == nullptr ? made[at] : *given[at];
  }

  void set_output_strided(
      int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options MUSA_NAMES_OF_DIMENSIONS) override {
    set_output(i, sizes, strides, options, /*exact_strides=*/true);
  }

  void set_output_raw_strided(
      int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options MUSA_NAMES_OF_DIMENSIONS) override {
    set_output(i, sizes, strides, options, /*exact_strides=*/false);
  }

  // Called after the kernel: copies outputs that were computed elsewhere to the caller's outputs.
  void finish() {
    for (size_t i = 0; i < N; ++i) {
      if (given[i] != nullptr && made[i].defined()) {
        given[i]->copy_(made[i]);
      }
    }
  }

 private:
  void set_output(
      int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options,
      bool exact_strides) {
    const auto at = static_cast<size_t>(i);
    if (given[at] == nullptr) {
      made[at] = empty(sizes, strides, options);
    } else if (in_place) {
      check_in_place(*given[at], sizes, options);
    } else {
      resize_out(*given[at], sizes, strides, options);
    }
    if (given[at] != nullptr && exact_strides && !strides.empty() && given[at]->strides() != strides) {
      made[at] = empty(sizes, strides, options);
    }
    if constexpr (iterates) {
      at::TensorIteratorBase::set_output_raw_strided(i, sizes, strides, options MUSA_NO_NAMES_OF_DIMENSIONS);
    }
  }

  static at::Tensor empty(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
    const auto dtype = c10::typeMetaToScalarType(options.dtype());
    const c10::DeviceIndex device = options.device().index();
    return strides.empty() ? at::detail::empty_musa(sizes, dtype, device, options.memory_format_opt())
                           : at::detail::empty_strided_musa(sizes, strides, dtype, device);
  }

  static void check_in_place(const at::Tensor& self, at::IntArrayRef sizes, const at::TensorOptions& options) {
    TORCH_CHECK(
        self.sizes() == sizes, "An in-place operation cannot change the shape of its tensor: ", self.sizes(), " to ",
        sizes, ".");
    TORCH_CHECK(
        self.dtype() == options.dtype(), "An in-place operation cannot change the dtype of its tensor: ", self.dtype(),
        " to ", options.dtype(), ".");
  }

  static void resize_out(
      const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
    TORCH_CHECK(
        out.dtype() == options.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ",
        out.dtype(), " instead");
    TORCH_CHECK(
        out.device() == options.device(), "Expected out tensor to have device ", options.device(), ", but got ",
        out.device(), " instead");
    if (at::native::resize_output(out, sizes)) {
      if (!strides.empty()) {
        out.as_strided_(sizes, strides);
      } else if (const auto format = options.memory_format_opt()) {
        out.unsafeGetTensorImpl()->empty_tensor_restride(*format);
      }
    }
  }
};

} // namespace musa_runtime
