// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Which lists of tensors one kernel can take. What is refused is torch's composite's, one tensor after the other.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <initializer_list>
#include <vector>

namespace musa_ops_ported {

// Lists of one length; all tensors on one device, of one dtype, dense; those of one position with the same sizes and strides.
bool lie_alike(std::initializer_list<at::TensorList> lists);

// Whether a number leaves the tensors' dtype as it is.
bool keeps_dtype(at::ScalarType dtype, const at::Scalar& number);

namespace together {


struct Request {
  std::vector<at::TensorList> lists;
  std::vector<at::Scalar> numbers;
  std::vector<at::Tensor> tensors; // single ones
  void add(at::TensorList list) { lists.push_back(list); }
  void add(const at::Scalar& number) { numbers.push_back(number); }
  void add(at::ArrayRef<at::Scalar> more) {
    counted = counted && (lists.empty() || more.size() == lists[0].size());
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  void add(const at::Tensor& tensor) { tensors.push_back(tensor); }
  bool counted = true; // as many numbers as tensors
};

enum class Numbers { Real, Floating, Any }; // floating point without complex, with complex, and integers too

bool served(const Request& request, Numbers numbers);

} // namespace together

// Predicates for ops.yaml, over an operator's lists and numbers.
template <typename... Arguments>
bool lists(const Arguments&... arguments) {
  together::Request request;
  (request.add(arguments), ...);
  return together::served(request, together::Numbers::Any);
}
// The same for operators that make floating point numbers of integers.
template <typename... Arguments>
bool floating_lists(const Arguments&... arguments) {
  together::Request request;
  (request.add(arguments), ...);
  return together::served(request, together::Numbers::Floating);
}
// And for those that are not defined for complex ones.
template <typename... Arguments>
bool real_lists(const Arguments&... arguments) {
  together::Request request;
  (request.add(arguments), ...);
  return together::served(request, together::Numbers::Real);
}

namespace together {

// Lists of numbers, each a tensor of one element, may stand beside the lists of tensors.
inline bool updates(at::TensorList first, at::TensorList list) {
  return list.empty() || (list[0].dim() == 0 && first[0].dim() != 0) || lie_alike({first, list});
}
template <typename Other>
bool updates(at::TensorList, const Other&) {
  return true;
}

} // namespace together

// Predicate of the fused optimizers: parameters, gradients and states lie alike.
template <typename... Rest>
bool updated_lists(at::TensorList self, const Rest&... rest) {
  return lie_alike({self}) && at::isFloatingType(self[0].scalar_type()) && (together::updates(self, rest) && ...);
}

} // namespace musa_ops_ported
