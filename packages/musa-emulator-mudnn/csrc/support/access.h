// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Access to the private members of the public classes, for the library.
#pragma once

#include "mudnn.h"

namespace musa::dnn {

struct HandleAccess {
  static int device(const Handle& handle) { return handle.device_; }
  static musaStream_t stream(const Handle& handle) { return handle.stream_; }
  static bool allow_tf32(const Handle& handle) { return handle.allow_tf32_; }
};

struct TensorAccess {
  static void* address(const Tensor& tensor) { return tensor.address_; }
  static Tensor::Type type(const Tensor& tensor) { return tensor.type_; }
  static Tensor::Format format(const Tensor& tensor) { return tensor.format_; }
  static float scale(const Tensor& tensor) { return tensor.scale_; }
  static bool shaped(const Tensor& tensor) { return tensor.ndim_ >= 0; }
  static int ndim(const Tensor& tensor) { return tensor.ndim_; }
  static const int64_t* dims(const Tensor& tensor) { return tensor.dims_; }
  static const int64_t* strides(const Tensor& tensor) { return tensor.strides_; }
  // Whether the operand has an address and a shape.
  static bool present(const Tensor& tensor) { return tensor.address_ != nullptr && tensor.ndim_ >= 0; }
  static int64_t elements(const Tensor& tensor) {
    int64_t count = tensor.ndim_ >= 0 ? 1 : 0;
    for (int i = 0; i < tensor.ndim_; ++i) {
      count *= tensor.dims_[i];
    }
    return count;
  }
  static bool contiguous(const Tensor& tensor) {
    int64_t expected = 1;
    for (int i = tensor.ndim_ - 1; i >= 0; --i) {
      if (tensor.dims_[i] != 1 && tensor.strides_[i] != expected) {
        return false;
      }
      expected *= tensor.dims_[i];
    }
    return true;
  }
};

// Grants the operations access to the private parameters of descriptor classes. The specialization for a class is in
// the file of the operation that uses it:
//
//   template <>
//   struct Parameters::Of<MatMulLtParam> { ... };
struct Parameters {
  template <class Class>
  struct Of;
};

} // namespace musa::dnn
