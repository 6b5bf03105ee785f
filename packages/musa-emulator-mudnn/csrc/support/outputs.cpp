// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/outputs.h"

#include <stdexcept>

#include "support/alias.h"

namespace musa_emulator::dnn {

Place::Place(at::Tensor& argument) : argument_(argument) {
  if (!argument.defined()) {
    return;
  }
  data_ = argument.data_ptr();
  type_ = argument.scalar_type();
  ndim_ = static_cast<size_t>(argument.dim());
  if (ndim_ > sizes_.size()) {
    throw std::length_error("an output has more dimensions than a tensor of muDNN");
  }
  std::copy_n(argument.sizes().begin(), ndim_, sizes_.begin());
  std::copy_n(argument.strides().begin(), ndim_, strides_.begin());
}

bool Place::is_kept() const {
  return argument_.defined() && argument_.const_data_ptr() == data_ && argument_.scalar_type() == type_ &&
      argument_.sizes() == c10::IntArrayRef(sizes_.data(), ndim_) &&
      argument_.strides() == c10::IntArrayRef(strides_.data(), ndim_);
}

void Place::restore() const {
  const c10::IntArrayRef sizes(sizes_.data(), ndim_);
  if (!argument_.defined() || argument_.sizes() != sizes) {
    throw std::runtime_error("a function of torch returned a result without the shape of its output argument");
  }
  // The same memory in another dimension order must not be overwritten while it is read.
  const at::Tensor result = argument_.const_data_ptr() == data_ ? argument_.clone() : argument_;
  argument_ = alias_memory(data_, type_, sizes, {strides_.data(), ndim_});
  argument_.copy_(result);
}

} // namespace musa_emulator::dnn
