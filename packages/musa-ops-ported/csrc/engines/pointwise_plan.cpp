// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engines/pointwise_plan.h"

#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>

namespace musa_ops_ported {
namespace {

// Whether to launch one thread per element. A thread waits for memory once per vector or element, so few elements take
// less time if they are spread over all threads of the device.
bool is_few(int64_t elements, c10::DeviceIndex on) {
  const musaDeviceProp& device = c10::musa::device_properties(on);
  constexpr int64_t per_held_thread = 2;
  return elements <= per_held_thread * device.multiProcessorCount * device.maxThreadsPerMultiProcessor;
}

PointwisePlan plan_of(const at::TensorIteratorBase& iter, const at::ScalarType* expected, int operands) {
  PointwisePlan plan;
  plan.count = static_cast<uint32_t>(iter.numel());
  bool aligned = true;
  // Dense: the iterator has merged all dimensions into one, along which each operand's stride is its element size.
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
    aligned &= reinterpret_cast<uintptr_t>(plan.data[i]) % (size * kVector) == 0;
  }
  plan.dense &= !plan.cast;
  const bool few = is_few(plan.count, iter.device(0).index());
  plan.vectors = aligned && !few;
  plan.per_block = few ? kThreads : plan.dense ? kPerDenseBlock : kThreads * kStridedItems;
  plan.blocks = static_cast<int>((iter.numel() + plan.per_block - 1) / plan.per_block);
  return plan;
}

} // namespace

void run_pointwise(at::TensorIteratorBase& iter, const at::ScalarType* expected, int operands, LaunchPointwise launch) {
  TORCH_INTERNAL_ASSERT(iter.ntensors() == operands, iter.ntensors(), " operands for a function of ", operands - 1);
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto& piece : iter.with_32bit_indexing()) {
      run_pointwise(piece, expected, operands, launch);
    }
    return;
  }
  launch(iter, plan_of(iter, expected, operands), c10::musa::getCurrentMUSAStream(iter.device(0).index()));
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

} // namespace musa_ops_ported
