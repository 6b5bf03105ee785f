// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Predicates for the shapes of operands.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "support/access.h"

namespace musa_emulator::dnn {

using musa::dnn::TensorAccess;

inline bool same_shape(const Tensor& a, const Tensor& b) {
  return TensorAccess::ndim(a) == TensorAccess::ndim(b) &&
      std::equal(TensorAccess::dims(a), TensorAccess::dims(a) + TensorAccess::ndim(a), TensorAccess::dims(b));
}

// Whether the inputs broadcast, by NumPy's rule, to the shape of out.
inline bool broadcast_to(const Tensor& out, std::initializer_list<const Tensor*> inputs) {
  const int ndim = TensorAccess::ndim(out);
  for (const Tensor* input : inputs) {
    if (TensorAccess::ndim(*input) > ndim) {
      return false;
    }
  }
  for (int i = 1; i <= ndim; ++i) { // starting with the last dimension
    int64_t size = 1;
    for (const Tensor* input : inputs) {
      const int own = TensorAccess::ndim(*input);
      const int64_t dim = i <= own ? TensorAccess::dims(*input)[own - i] : 1;
      if (dim != 1 && size != 1 && dim != size) {
        return false;
      }
      size = dim != 1 ? dim : size;
    }
    if (TensorAccess::dims(out)[ndim - i] != size) {
      return false;
    }
  }
  return true;
}

// Whether elements share memory, because a dimension has stride 0.
inline bool same_spot_twice(const Tensor& tensor) {
  for (int i = 0; i < TensorAccess::ndim(tensor); ++i) {
    if (TensorAccess::dims(tensor)[i] > 1 && TensorAccess::strides(tensor)[i] == 0) {
      return true;
    }
  }
  return false;
}

// A 0-dim tensor as a vector of one element, so that it has a dimension.
inline Tensor as_vector(const Tensor& tensor) {
  Tensor vector = tensor;
  if (TensorAccess::ndim(tensor) == 0) {
    vector.SetNdInfo({1});
  }
  return vector;
}

inline bool has_type(const Tensor& tensor, std::initializer_list<Tensor::Type> types) {
  return std::find(types.begin(), types.end(), TensorAccess::type(tensor)) != types.end();
}

inline bool same_type(const Tensor& a, const Tensor& b) { return TensorAccess::type(a) == TensorAccess::type(b); }

inline bool present(const Tensor& tensor) { return TensorAccess::present(tensor); }

inline bool floating(const Tensor& tensor) {
  return has_type(tensor, {Tensor::Type::HALF, Tensor::Type::BFLOAT16, Tensor::Type::FLOAT, Tensor::Type::DOUBLE});
}

} // namespace musa_emulator::dnn
