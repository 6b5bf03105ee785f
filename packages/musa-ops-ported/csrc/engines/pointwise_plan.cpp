// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engines/pointwise_plan.h"

namespace musa_ops_ported {

bool split_pointwise(at::TensorIteratorBase& iter, c10::function_ref<void(at::TensorIteratorBase&)> one) {
  if (iter.numel() == 0 || iter.can_use_32bit_indexing()) {
    return false;
  }
  for (auto& piece : iter.with_32bit_indexing()) {
    one(piece);
  }
  return true;
}

PointwisePlan plan_pointwise(const at::TensorIteratorBase& iter, const at::ScalarType* expected, int operands) {
  TORCH_INTERNAL_ASSERT(iter.ntensors() == operands, iter.ntensors(), " operands for a function of ", operands - 1);
  PointwisePlan plan;
  plan.count = iter.numel();
  if (plan.count == 0) {
    return plan;
  }
  plan.aligned = true;
  // Dense: the iterator has merged all dimensions into one, and each operand's stride in it is its element.
  plan.dense = iter.ndim() <= 1;
  for (int i = 0; i < operands; ++i) {
    plan.data[i] = static_cast<char*>(iter.data_ptr(i));
    plan.dtype[i] = iter.dtype(i);
    if (i > 0 && iter.is_cpu_scalar(i)) {
      plan.numbers |= 1u << i;
      continue;
    }
    TORCH_INTERNAL_ASSERT(iter.device(i).is_privateuseone(), "operand ", i, " is on ", iter.device(i));
    const auto size = static_cast<int64_t>(iter.element_size(i));
    plan.cast |= expected[i] != at::ScalarType::Undefined && plan.dtype[i] != expected[i];
    plan.dense &= iter.ndim() == 0 || plan.count == 1 || iter.strides(i)[0] == size;
    plan.aligned &= reinterpret_cast<uintptr_t>(plan.data[i]) % (size * kVector) == 0;
  }
  plan.dense &= !plan.cast;
  return plan;
}

} // namespace musa_ops_ported
