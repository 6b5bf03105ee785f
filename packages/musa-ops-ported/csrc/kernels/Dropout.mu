// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <musa_runtime/argument_checks.h>
#include <c10/util/Load.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/random.muh"
#include "engines/vector.h"
#include "kernels/Dropout.h"

namespace musa_ops_ported {
namespace {

// A thread processes four adjacent elements if all vector accesses are aligned, otherwise four elements one grid
// apart. Both match torch's CUDA kernel in which element gets which number. Elements are loaded before numbers are
// drawn, so that drawing hides the latency of the loads.
template <typename T, int neighbours>
__global__ void C10_LAUNCH_BOUNDS_2(kRandomThreads, 4) dropout_kernel(
    const int64_t count, const at::PhiloxMusaState philox, const at::opmath_type<T> keep, const T* const in,
    T* const out, bool* const mask) {
  using op_t = at::opmath_type<T>;
  const int64_t thread = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t threads = int64_t(blockDim.x) * gridDim.x;
  const op_t scale = static_cast<op_t>(1.0 / keep);
  RandomState state = random_state(philox, thread);
  for (int64_t first = thread * neighbours; first < count; first += threads * 4) {
    Vector<T> values;
    Vector<bool> kept;
    if constexpr (neighbours == 4) {
      values = *reinterpret_cast<const Vector<T>*>(in + first);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t at = first + i * threads;
        values.values[i] = at < count ? in[at] : T(0);
      }
    }
    const float4 numbers = murand_uniform4(&state);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      kept.values[i] = (&numbers.x)[i] < keep;
      values.values[i] = static_cast<T>(static_cast<op_t>(values.values[i]) * (kept.values[i] ? scale : op_t(0)));
    }
    if constexpr (neighbours == 4) {
      *reinterpret_cast<Vector<T>*>(out + first) = values;
      *reinterpret_cast<Vector<bool>*>(mask + first) = kept;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t at = first + i * threads;
        if (at < count) {
          out[at] = values.values[i];
          mask[at] = kept.values[i];
        }
      }
    }
  }
}

template <typename T>
bool aligned(const at::Tensor& in, const at::Tensor& out, const at::Tensor& mask) {
  const auto at = [](const at::Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()); };
  return in.numel() % 4 == 0 && at(in) % (4 * sizeof(T)) == 0 && at(out) % (4 * sizeof(T)) == 0 && at(mask) % 4 == 0;
}

// Processes elements in memory order; the input and the results have the same strides.
std::tuple<at::Tensor, at::Tensor> dropped(
    const at::Tensor& input, double keep, const std::optional<at::Generator>& generator) {
  const at::Tensor in = input.is_non_overlapping_and_dense() ? input : input.contiguous();
  at::Tensor out = aten::empty_like(in);
  at::Tensor mask = aten::empty_like(in, in.options().dtype(at::kBool));
  if (in.numel() == 0) {
    return {out, mask};
  }
  const RandomPlan plan = plan_random(in.numel(), 4, generator);
  const auto stream = c10::musa::getCurrentMUSAStream();
  MUSA_DISPATCH(in.scalar_type(), "dropout", (MUSA_FLOATING), {
    const auto* const from = in.const_data_ptr<scalar_t>();
    auto* const to = out.mutable_data_ptr<scalar_t>();
    bool* const kept = mask.mutable_data_ptr<bool>();
    const auto probability = static_cast<at::opmath_type<scalar_t>>(keep);
    if (aligned<scalar_t>(in, out, mask)) {
      dropout_kernel<scalar_t, 4>
          <<<plan.blocks, kRandomThreads, 0, stream>>>(in.numel(), plan.state, probability, from, to, kept);
    } else {
      dropout_kernel<scalar_t, 1>
          <<<plan.blocks, kRandomThreads, 0, stream>>>(in.numel(), plan.state, probability, from, to, kept);
    }
    C10_MUSA_KERNEL_LAUNCH_CHECK();
  });
  return {out, mask};
}

// Returns the tensor, or a copy with the strides of another, which is dense.
at::Tensor laid_out_as(const at::Tensor& other, const at::Tensor& tensor) {
  if (tensor.strides() == other.strides()) {
    return tensor;
  }
  return at::empty_strided(other.sizes(), other.strides(), tensor.options()).copy_(tensor);
}

} // namespace

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  if (!train.value_or(true) || p == 0 || input.numel() == 0) {
    return {input.clone(), aten::ones_like(input, input.options().dtype(at::kBool))};
  }
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 1) {
    return {aten::zeros_like(input), aten::zeros_like(input, input.options().dtype(at::kBool))};
  }
  return dropped(input, 1 - p, std::nullopt);
}

at::Tensor native_dropout_backward(const at::Tensor& grad_output, const at::Tensor& mask, double scale) {
  musa_runtime::check_shape("native_dropout_backward", "mask", mask, grad_output.sizes());
  if (!at::isFloatingType(grad_output.scalar_type()) || mask.scalar_type() != at::kBool) {
    return grad_output.mul(mask).mul(scale);
  }
  const at::Tensor result = aten::empty_like(grad_output); // dense, in the order of dimensions of grad_output
  const at::Tensor gradient = laid_out_as(result, grad_output);
  const at::Tensor kept = laid_out_as(result, mask);
  MUSA_DISPATCH(gradient.scalar_type(), "dropout_backward", (MUSA_FLOATING), {
    const auto* const from = gradient.const_data_ptr<scalar_t>();
    const bool* const keep = kept.const_data_ptr<bool>();
    auto* const to = result.mutable_data_ptr<scalar_t>();
    const op_t factor = static_cast<op_t>(scale);
    for_each(gradient.numel(), [=] __device__(int64_t i) {
      // A product, so that NaN and infinities of dropped elements become NaN, as in the forward kernel.
      to[i] = static_cast<scalar_t>(static_cast<op_t>(from[i]) * (c10::load(keep + i) ? factor : op_t(0)));
    });
  });
  return result;
}

} // namespace musa_ops_ported
