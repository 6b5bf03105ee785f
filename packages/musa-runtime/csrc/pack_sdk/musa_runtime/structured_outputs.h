// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <ATen/musa/EmptyTensor.h>
#include <c10/musa/MUSACompat.h>

#include <algorithm>
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
      int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides,
      at::TensorOptions options MUSA_NAMES_OF_DIMENSIONS) override {
    set_output(i, sizes, strides, options, /*exact_strides=*/true);
  }

  void set_output_raw_strided(
      int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides,
      at::TensorOptions options MUSA_NAMES_OF_DIMENSIONS) override {
    set_output(i, sizes, strides, options, /*exact_strides=*/false);
  }

  // Sets the iterator up and makes the output, in place of `meta`: torch's general setup is a third of the instructions of a
  // small operator beside the launch. Only for operators of which the output has the inputs' shape and dtype if that is a
  // floating point dtype, and whose iterator has the output and the inputs in this order.
  //
  // Returns false, with the iterator and all values unchanged, unless the inputs and a given output are plain tensors of one
  // shape with elements, of one such dtype and on one device. allow_numbers: inputs, except one, may be numbers of the host.
  template <bool allow_numbers, typename... Tensors>
  bool set_up_plain(const Tensors&... inputs) {
    static_assert(iterates && N == 1);
    constexpr size_t count = sizeof...(inputs);
    const std::array<const at::Tensor*, count> all{&inputs...};
    std::array<bool, count> number{};
    const at::Tensor* like = nullptr;
    bool numbers = false;
    for (size_t i = 0; i < count; ++i) {
      const at::Tensor& input = *all[i];
      number[i] = allow_numbers && is_number(input);
      if (number[i]) {
        numbers = true;
      } else if (like == nullptr ? !starts(input) : !matches(input, *like)) {
        return false;
      } else if (like == nullptr) {
        like = &input;
      }
    }
    // If the operands differ in shape, torch has other rules for the output's strides along dimensions of size 1.
    if (like == nullptr || (numbers && std::ranges::count(like->sizes(), 1) != 0)) {
      return false;
    }
    if (given[0] != nullptr && !matches(*given[0], *like)) {
      return false;
    }
    if (given[0] == nullptr) {
      made[0] = at::detail::empty_musa(like->sizes(), like->scalar_type(), like->device().index(), std::nullopt);
    }
    const at::Tensor& out = given[0] != nullptr ? *given[0] : made[0];
    const int64_t size = like->itemsize();
    const int64_t numel = like->numel();
    void* const to = out.mutable_data_ptr(); // first: it may move an input that is the output
    std::array<void*, count> data;
    for (size_t i = 0; i < count; ++i) {
      data[i] = const_cast<void*>(all[i]->const_data_ptr());
      // All are stored in one order without gaps, so they share all elements, none, or some at wrong places.
      if (!number[i] && data[i] != to && distance(data[i], to) < static_cast<uintptr_t>(numel * size)) {
        return false;
      }
    }
    const at::ScalarType dtype = like->scalar_type();
    this->shape_.push_back(numel);
    this->has_coalesced_dimensions_ = like->dim() > 1;
    this->all_ops_same_shape_ = !numbers;
    this->common_dtype_ = dtype;
    this->common_device_ = like->device();
    this->num_outputs_ = 1;
    at::OperandInfo& result = this->operands_.emplace_back(c10::MaybeOwned<at::TensorBase>::borrowed(out));
    result.is_output = true;
    result.stride_bytes.push_back(size);
    result.data = to;
    for (size_t i = 0; i < count; ++i) {
      at::OperandInfo& operand = this->operands_.emplace_back(c10::MaybeOwned<at::TensorBase>::borrowed(*all[i]));
      operand.is_const = true;
      operand.target_dtype = dtype;
      operand.stride_bytes.push_back(number[i] ? 0 : size);
      operand.data = data[i];
      this->operands_[0].is_read_write |= all[i]->is_same(out);
    }
    return true;
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
  // Whether an operand is a 0-dim number of the host that does not change the dtype of floating point operands.
  static bool is_number(const at::Tensor& tensor) {
    return tensor.defined() && tensor.dim() == 0 && tensor.device().is_cpu() &&
        !c10::isComplexType(tensor.scalar_type());
  }

  // Whether a tensor's elements are adjacent, in the order of its dimensions, and are its values as they are.
  static bool is_plain(const at::Tensor& tensor) {
    return tensor.is_contiguous() && !tensor.is_neg() && !c10::musa::has_names(tensor);
  }

  static uintptr_t distance(const void* a, const void* b) {
    const auto first = reinterpret_cast<uintptr_t>(a);
    const auto second = reinterpret_cast<uintptr_t>(b);
    return first < second ? second - first : first - second;
  }

  static bool starts(const at::Tensor& input) {
    if (!input.defined() || !input.device().is_privateuseone() || input.dim() == 0 || input.numel() == 0) {
      return false;
    }
    switch (input.scalar_type()) {
      case at::kFloat:
      case at::kDouble:
      case at::kHalf:
      case at::kBFloat16: return is_plain(input);
      default: return false;
    }
  }

  static bool matches(const at::Tensor& tensor, const at::Tensor& like) {
    return tensor.defined() && tensor.device() == like.device() && tensor.scalar_type() == like.scalar_type() &&
        tensor.sizes() == like.sizes() && is_plain(tensor);
  }

  void set_output(
      int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options, bool exact_strides) {
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
