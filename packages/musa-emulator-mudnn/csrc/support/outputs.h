// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The caller's memory as output arguments of torch's functions. Such a function may leave its result elsewhere:
// torch.cuda's gradient of layer norm assigns a new tensor to the argument if there are many rows, and other functions
// change the strides of an output.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "support/access.h"

namespace musa_emulator::dnn {

// Memory, type and shape of an output argument.
class Place {
 public:
  explicit Place(at::Tensor& argument);
  // Makes the argument an alias of the memory again, and copies the result there if the function left it elsewhere.
  void keep() const {
    if (data_ != nullptr && !is_kept()) [[unlikely]] {
      restore();
    }
  }

 private:
  bool is_kept() const;
  void restore() const;

  at::Tensor& argument_;
  void* data_ = nullptr; // nullptr: there is no output
  c10::ScalarType type_ = c10::ScalarType::Undefined;
  size_t ndim_ = 0;
  std::array<int64_t, musa::dnn::Tensor::kMaxDims> sizes_;
  std::array<int64_t, musa::dnn::Tensor::kMaxDims> strides_;
};

// The output arguments of one call:
//
//   const Outputs given(sorted, places);
//   ops::sort_out(sorted, places, in, stable, dim, descending);
//   given.keep();
template <size_t Count>
class Outputs {
 public:
  template <class... Arguments>
  explicit Outputs(Arguments&... arguments) : places_{Place(arguments)...} {}
  void keep() const {
    std::for_each(places_.begin(), places_.end(), [](const Place& place) { place.keep(); });
  }

 private:
  const std::array<Place, Count> places_;
};
template <class... Arguments>
Outputs(Arguments&...) -> Outputs<sizeof...(Arguments)>;

} // namespace musa_emulator::dnn
