// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engines/reduce_plan.h"

#include <c10/musa/MUSAFunctions.h>

#include <algorithm>
#include <bit>

namespace musa_ops_ported {

namespace {

// Elements per thread above which another thread is worth the cost of combining its value.
constexpr int64_t kElementsPerThread = 32;
constexpr int64_t kPartsPerThread = 8;

// Target number of blocks of a reduction, if each thread has enough elements. A GPU reads memory at its full rate only
// if all its multiprocessors are busy to the end, so all blocks should run at one time.
int64_t target_blocks() {
  const musaDeviceProp& device = c10::musa::device_properties(c10::musa::current_device());
  constexpr int64_t few = 256;
  constexpr int registers = 64; // of a thread; most of the kernels use 48 to 64
  const int threads = std::min(device.maxThreadsPerMultiProcessor, device.regsPerMultiprocessor / registers);
  return std::max(few, int64_t{device.multiProcessorCount} * (threads / kReduceThreads));
}

int64_t power_of_two_from(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}

// Chooses lanes, rows and splits from the sizes in the plan.
void spread(ReducePlan& plan, int64_t outputs, bool elements_adjoin) {
  plan.lanes_first = elements_adjoin;
  const int64_t work = (plan.count + kElementsPerThread - 1) / kElementsPerThread;
  if (elements_adjoin) {
    plan.lanes = static_cast<int>(std::min<int64_t>(power_of_two_from(work), kReduceThreads));
    plan.rows = kReduceThreads / plan.lanes;
  } else {
    plan.rows = static_cast<int>(std::min<int64_t>(power_of_two_from(outputs), kReduceThreads));
    plan.lanes = kReduceThreads / plan.rows;
  }
  plan.row_blocks = (outputs + plan.rows - 1) / plan.rows;
  const int64_t of_a_block = plan.lanes * kElementsPerThread;
  plan.splits =
      std::clamp<int64_t>(plan.count / of_a_block, 1, std::max<int64_t>(1, target_blocks() / plan.row_blocks));
  plan.chunk = (plan.count + plan.splits - 1) / plan.splits;
  plan.chunk = (plan.chunk + kVector - 1) / kVector * kVector;
  plan.splits = plan.count == 0 ? 1 : (plan.count + plan.chunk - 1) / plan.chunk;
}

} // namespace

ReducePlan plan_reduce(const at::TensorIteratorBase& iter) {
  ReducePlan plan;
  const int in = iter.ntensors() - 1;
  TORCH_INTERNAL_ASSERT(iter.noutputs() <= 2 && in == iter.noutputs());
  TORCH_CHECK(
      iter.ndim() <= Offsets<1>::kDims, "a reduction over ", iter.ndim(),
      " dimensions that cannot be merged is not "
      "supported; the maximum is ",
      Offsets<1>::kDims, ".\nFix: call contiguous() on the input first");
  plan.in = static_cast<const char*>(iter.data_ptr(in));
  for (int i = 0; i < iter.noutputs(); ++i) {
    plan.out[i] = static_cast<char*>(iter.data_ptr(i));
  }
  plan.outputs = 1;
  plan.count = 1;
  const auto shape = iter.shape();
  for (int dim = 0; dim < iter.ndim(); ++dim) {
    // The output has stride 0 along reduced dimensions. A dimension of size 1 is never counted as reduced.
    if (iter.strides(0)[dim] == 0 && shape[dim] != 1) {
      plan.element.sizes[plan.element.dims] = shape[dim];
      plan.element.strides[0][plan.element.dims++] = iter.strides(in)[dim];
      plan.count *= shape[dim];
    } else {
      auto& output = plan.output;
      output.sizes[output.dims] = shape[dim];
      output.strides[0][output.dims] = iter.strides(0)[dim];
      output.strides[1][output.dims] = iter.noutputs() > 1 ? iter.strides(1)[dim] : 0;
      output.strides[2][output.dims++] = iter.strides(in)[dim];
      plan.outputs *= shape[dim];
    }
  }
  if (plan.outputs == 0) {
    return plan;
  }
  const auto size = static_cast<int64_t>(iter.element_size(in));
  const int64_t vector = size * kVector;
  const bool aligned = reinterpret_cast<uintptr_t>(plan.in) % vector == 0;
  const auto& element = plan.element;
  const auto& output = plan.output;
  // All other strides must preserve the alignment of a vector load.
  const auto steps = [&](const int64_t* strides, int dims, int from) {
    return std::all_of(
        strides + from, strides + std::max(dims, from), [&](int64_t stride) { return stride % vector == 0; });
  };
  const bool elements_adjoin =
      element.dims == 0 || std::abs(element.strides[0][0]) == size || output.dims == 0 || output.strides[2][0] != size;
  plan.vector_of_elements =
      aligned && element.dims == 1 && element.strides[0][0] == size && steps(output.strides[2], output.dims, 0);
  plan.vector_of_outputs = !elements_adjoin && aligned && output.sizes[0] % kVector == 0 &&
      steps(output.strides[2], output.dims, 1) && steps(element.strides[0], element.dims, 0);
  spread(plan, plan.vector_of_outputs ? plan.outputs / kVector : plan.outputs, elements_adjoin);
  return plan;
}

ReducePlan plan_partial(const ReducePlan& first, const void* partial, size_t bytes) {
  ReducePlan plan;
  plan.outputs = first.outputs;
  plan.count = first.splits;
  plan.in = static_cast<const char*>(partial);
  plan.out[0] = first.out[0];
  plan.out[1] = first.out[1];
  plan.output = first.output;
  // Partial results are stored split by split, each ordered by result index.
  plan.element.dims = 1;
  plan.element.sizes[0] = plan.count;
  plan.element.strides[0][0] = static_cast<int64_t>(bytes) * first.outputs;
  plan.lanes = static_cast<int>(std::min<int64_t>(power_of_two_from(plan.count / kPartsPerThread), kReduceThreads));
  plan.rows = kReduceThreads / plan.lanes;
  plan.row_blocks = (plan.outputs + plan.rows - 1) / plan.rows;
  plan.chunk = plan.count;
  return plan;
}

} // namespace musa_ops_ported
