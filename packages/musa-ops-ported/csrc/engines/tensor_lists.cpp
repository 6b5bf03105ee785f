// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engines/tensor_lists.h"

#include <c10/core/ScalarType.h>

namespace musa_ops_ported {

bool lie_alike(std::initializer_list<at::TensorList> lists) {
  const at::TensorList& front = *lists.begin();
  if (front.empty()) {
    return false;
  }
  for (const at::TensorList& list : lists) {
    if (list.size() != front.size()) {
      return false;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const at::Tensor& tensor = list[i];
      if (!tensor.defined() || tensor.device() != front[0].device() || tensor.scalar_type() != front[0].scalar_type() ||
          tensor.layout() != at::kStrided || !tensor.is_non_overlapping_and_dense() ||
          tensor.sizes() != front[i].sizes() || tensor.strides() != front[i].strides()) {
        return false;
      }
    }
  }
  return true;
}

bool keeps_dtype(at::ScalarType dtype, const at::Scalar& number) {
  return at::isComplexType(dtype) || (!number.isComplex() && (at::isFloatingType(dtype) || number.isIntegral(true)));
}

namespace together {

bool served(const Request& request, Numbers numbers) {
  if (request.lists.empty() || !request.counted) {
    return false;
  }
  for (const at::TensorList& list : request.lists) {
    if (!lie_alike({request.lists[0], list})) {
      return false;
    }
  }
  const at::Tensor& first = request.lists[0][0];
  const at::ScalarType dtype = first.scalar_type();
  const bool defined = at::isFloatingType(dtype) || (numbers != Numbers::Real && at::isComplexType(dtype)) ||
      (numbers == Numbers::Any && at::isIntegralType(dtype, /*includeBool=*/false));
  if (!defined || dtype == at::kComplexHalf) {
    return false;
  }
  for (const at::Scalar& number : request.numbers) {
    if (!keeps_dtype(dtype, number)) {
      return false;
    }
  }
  for (const at::Tensor& tensor : request.tensors) {
    if (tensor.dim() != 0 || tensor.scalar_type() != dtype || tensor.device() != first.device()) {
      return false;
    }
  }
  return true;
}

} // namespace together

} // namespace musa_ops_ported
