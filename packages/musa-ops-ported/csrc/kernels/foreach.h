// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Helpers of the foreach operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <vector>

#include "engines/aten.h"

namespace musa_ops_ported {

inline std::vector<at::Tensor> like(at::TensorList list) {
  std::vector<at::Tensor> made;
  made.reserve(list.size());
  for (const at::Tensor& tensor : list) {
    made.push_back(aten::empty_like(tensor));
  }
  return made;
}

template <typename T>
std::vector<T> as(at::ArrayRef<at::Scalar> numbers) {
  std::vector<T> converted;
  converted.reserve(numbers.size());
  for (const at::Scalar& number : numbers) {
    converted.push_back(number.to<T>());
  }
  return converted;
}

} // namespace musa_ops_ported
