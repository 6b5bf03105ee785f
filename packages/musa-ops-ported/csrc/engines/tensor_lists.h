// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Tests whether one kernel can process lists of tensors. Otherwise torch's composite kernel processes tensor by
// tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <initializer_list>
#include <vector>

namespace musa_ops_ported {

// Whether the lists have the same length, all tensors are dense and have one device and dtype, and tensors at the
// same position have equal sizes and strides.
bool lie_alike(std::initializer_list<at::TensorList> lists);

// Whether an operation with this number keeps the tensors' dtype.
bool keeps_dtype(at::ScalarType dtype, const at::Scalar& number);

namespace together {

struct Request {
  std::vector<at::TensorList> lists;
  std::vector<at::Scalar> numbers;
  std::vector<at::Tensor> tensors; // single tensors
  void add(at::TensorList list) { lists.push_back(list); }
  void add(const at::Scalar& number) { numbers.push_back(number); }
  void add(at::ArrayRef<at::Scalar> more) {
    counted = counted && (lists.empty() || more.size() == lists[0].size());
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  void add(const at::Tensor& tensor) { tensors.push_back(tensor); }
  bool counted = true; // as many numbers as tensors
};

enum class Numbers { Real, Floating, Any }; // allowed dtypes: real floating point, also complex, also integers

bool served(const Request& request, Numbers numbers);

} // namespace together

// Predicate for ops.yaml: whether one kernel can serve these lists and numbers.
template <typename... Arguments>
bool lists(const Arguments&... arguments) {
  together::Request request;
  (request.add(arguments), ...);
  return together::served(request, together::Numbers::Any);
}
// The same for operators that convert integers to floating point.
template <typename... Arguments>
bool floating_lists(const Arguments&... arguments) {
  together::Request request;
  (request.add(arguments), ...);
  return together::served(request, together::Numbers::Floating);
}
// The same for operators that do not support complex numbers.
template <typename... Arguments>
bool real_lists(const Arguments&... arguments) {
  together::Request request;
  (request.add(arguments), ...);
  return together::served(request, together::Numbers::Real);
}

namespace together {

// A list of one-element tensors, such as step counts, may accompany the lists of tensors.
inline bool updates(at::TensorList first, at::TensorList list) {
  return list.empty() || (list[0].dim() == 0 && first[0].dim() != 0) || lie_alike({first, list});
}
template <typename Other>
bool updates(at::TensorList, const Other&) {
  return true;
}

} // namespace together

// Predicate of the fused optimizers: parameters, gradients and states have equal layouts.
template <typename... Rest>
bool updated_lists(at::TensorList self, const Rest&... rest) {
  return lie_alike({self}) && at::isFloatingType(self[0].scalar_type()) && (together::updates(self, rest) && ...);
}

} // namespace musa_ops_ported
