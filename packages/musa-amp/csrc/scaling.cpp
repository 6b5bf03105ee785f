// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The operators behind torch.amp.GradScaler. They do not wait for the device, so both can be captured in a graph.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/op_pack.h>
#include <torch/library.h>

#include <algorithm>

#include "scaling_kernels.h"

namespace musa_amp {
namespace {

using at::Tensor;

void check_state(const Tensor& state, const char* name, at::ScalarType dtype, c10::Device device) {
  TORCH_CHECK(
      state.numel() == 1 && state.scalar_type() == dtype, name, " must be one element of ", dtype,
      ", but has the shape ", state.sizes(), " and dtype ", state.scalar_type(), ".");
  TORCH_CHECK(state.device() == device, name, " must be on ", device, ", but is on ", state.device(), ".");
}

Dtype dtype_of(const Tensor& grad) {
  switch (grad.scalar_type()) {
    case at::kHalf: return Dtype::kFloat16;
    case at::kBFloat16: return Dtype::kBFloat16;
    case at::kFloat: return Dtype::kFloat32;
    case at::kDouble: return Dtype::kFloat64;
    default:
      TORCH_CHECK_TYPE(
          false, "gradients to unscale must be of float16, bfloat16, float32 or float64, but one is of ",
          grad.scalar_type(), ".");
  }
}

void unscale(at::TensorList grads, Tensor& found_inf, const Tensor& inv_scale) {
  if (grads.empty()) {
    return;
  }
  const c10::Device device = found_inf.device();
  check_state(found_inf, "found_inf", at::kFloat, device);
  check_state(inv_scale, "inv_scale", at::kFloat, device);
  // All gradients are checked before the first one is written.
  for (const Tensor& grad : grads) {
    TORCH_CHECK(
        grad.device() == device, "gradients to unscale must be on the device of found_inf, ", device,
        ", but one is on ", grad.device(), ".");
    TORCH_CHECK(
        grad.layout() == at::kStrided, "gradients to unscale must be strided tensors, but one is ", grad.layout(),
        ".\nFix: for a sparse gradient, pass its values.");
    at::assert_no_internal_overlap(grad);
    dtype_of(grad);
  }

  const c10::musa::MUSAGuard guard(device);
  const musaStream_t stream = c10::musa::getCurrentMUSAStream();
  float* const flag = found_inf.mutable_data_ptr<float>();
  const float* const factor = inv_scale.const_data_ptr<float>();
  Chunks chunks;
  Dtype dtype = Dtype::kFloat32;
  const auto launch = [&] {
    if (chunks.count > 0) {
      launch_unscale(chunks, dtype, flag, factor, stream);
      C10_MUSA_KERNEL_LAUNCH_CHECK();
      chunks.count = 0;
    }
  };
  const auto add = [&](const Tensor& dense) {
    if (dtype_of(dense) != dtype) {
      launch();
      dtype = dtype_of(dense);
    }
    char* const data = static_cast<char*>(dense.mutable_data_ptr());
    for (int64_t begin = 0; begin < dense.numel(); begin += kChunkElements) {
      if (chunks.count == Chunks::kMost) {
        launch();
      }
      chunks.at[chunks.count++] = {
          data + begin * dense.element_size(), std::min(kChunkElements, dense.numel() - begin)};
    }
  };
  for (const Tensor& grad : grads) {
    if (grad.is_non_overlapping_and_dense()) {
      add(grad);
    } else {
      const Tensor dense = grad.contiguous();
      add(dense);
      launch(); // enqueued now, because `dense` is freed at the end of this block
      grad.copy_(dense);
    }
  }
  launch();
}

Tensor& update_scale(
    Tensor& scale, Tensor& growth_tracker, const Tensor& found_inf, double growth, double backoff, int64_t interval) {
  const c10::Device device = scale.device();
  check_state(scale, "the scale", at::kFloat, device);
  check_state(growth_tracker, "growth_tracker", at::kInt, device);
  check_state(found_inf, "found_inf", at::kFloat, device);
  const c10::musa::MUSAGuard guard(device);
  launch_update_scale(
      scale.mutable_data_ptr<float>(), growth_tracker.mutable_data_ptr<int>(), found_inf.const_data_ptr<float>(),
      growth, backoff, interval, c10::musa::getCurrentMUSAStream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return scale;
}

// A sparse gradient reaches the same check, whose error says to pass its values.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_amp_foreach_non_finite_check_and_unscale_", TORCH_FN(unscale));
}

} // namespace
} // namespace musa_amp

MUSA_OP_PACK(amp, pack) {
  pack.impl("aten::_amp_foreach_non_finite_check_and_unscale_", TORCH_FN(musa_amp::unscale));
  pack.impl("aten::_amp_update_scale_", TORCH_FN(musa_amp::update_scale));
}
