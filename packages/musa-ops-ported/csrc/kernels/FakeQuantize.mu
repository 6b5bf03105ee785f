// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Rounds values to a quantization grid but keeps them in floating point.
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/musa/detail/OffsetCalculator.muh>
#include <ATen/native/quantized/FakeQuantAffine.h>
#include <c10/core/DynamicCast.h>

#include <array>

#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/optional.h"
#include "engines/pointwise.muh"
#include "engines/pointwise_pair.muh"

namespace musa_ops_ported {
namespace {

struct Range {
  int64_t least, most;

  C10_HOST_DEVICE bool has(int64_t x) const { return x >= least && x <= most; }
  C10_HOST_DEVICE int64_t limit(int64_t x) const { return x < least ? least : x > most ? most : x; }
};

// Grid steps are computed in single precision, as on other devices.
__host__ __device__ C10_ALWAYS_INLINE int64_t quantized(float x, float scale, int64_t zero_point) {
  return static_cast<int64_t>(std::nearbyint(x * (1.0f / scale))) + zero_point;
}

// ---- per-tensor quantization

template <typename T>
__host__ __device__ C10_ALWAYS_INLINE std::pair<T, bool> rounded(T x, float scale, int64_t zero_point, Range range) {
  const int64_t q = quantized(static_cast<float>(x), scale, zero_point);
  return {static_cast<T>(static_cast<float>(range.limit(q) - zero_point) * scale), range.has(q)};
}

at::TensorIterator with_mask(const at::Tensor& output, const at::Tensor& mask, const at::Tensor& input) {
  return at::TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(output)
      .add_output(mask)
      .add_const_input(input)
      .build();
}

template <typename T>
void round_all(at::TensorIterator& iter, float scale, int64_t zero_point, Range range) {
  pointwise_pair(
      iter, [=] __host__ __device__(T x) -> std::pair<T, bool> { return rounded(x, scale, zero_point, range); });
}
void cachemask(
    at::Tensor& output, at::Tensor& mask, const at::Tensor& input, float scale, int64_t zero_point, int64_t quant_min,
    int64_t quant_max) {
  auto iter = with_mask(output, mask, input);
  MUSA_DISPATCH(input.scalar_type(), "fake_quantize", (MUSA_FLOATING), {
    round_all<scalar_t>(iter, scale, zero_point, Range{quant_min, quant_max});
  });
}

// Variant with the scale in device memory and an enable switch.
template <typename T>
void round_if(
    at::TensorIterator& iter, const float* scale, const int32_t* zero_point, const int64_t* enabled, Range range) {
  pointwise_pair(iter, [=] __host__ __device__(T x) -> std::pair<T, bool> {
    return *enabled != 0 ? rounded(x, *scale, int64_t{*zero_point}, range) : std::pair<T, bool>{x, true};
  });
}
void cachemask_on_device(
    at::Tensor& output, at::Tensor& mask, const at::Tensor& input, const at::Tensor& scale,
    const at::Tensor& zero_point, const at::Tensor& enabled, int64_t quant_min, int64_t quant_max) {
  auto iter = with_mask(output, mask, input);
  const at::Tensor s = dense_as(scale, at::kFloat), z = dense_as(zero_point, at::kInt);
  const at::Tensor on = dense_as(enabled, at::kLong);
  MUSA_DISPATCH(input.scalar_type(), "fake_quantize", (MUSA_FLOATING), {
    round_if<scalar_t>(
        iter, s.const_data_ptr<float>(), z.const_data_ptr<int32_t>(), on.const_data_ptr<int64_t>(),
        Range{quant_min, quant_max});
  });
}

// ---- per-channel quantization: scale and zero point are expanded to the shape of the input

template <typename T, typename ZeroPoint>
__host__ __device__ C10_ALWAYS_INLINE int64_t quantized_with(T x, float scale, ZeroPoint zero_point) {
  if constexpr (std::is_integral_v<ZeroPoint>) {
    return quantized(static_cast<float>(x), scale, zero_point);
  } else {
    return static_cast<int64_t>(
        std::nearbyint(static_cast<float>(x) * (1.0f / scale) + static_cast<float>(zero_point)));
  }
}

template <typename T, typename ZeroPoint>
void round_channels(at::TensorIterator& iter, at::TensorIterator& iter_mask, Range range) {
  pointwise(iter, [=] __host__ __device__(T x, float scale, ZeroPoint zero_point) -> T {
    const int64_t q = range.limit(quantized_with(x, scale, zero_point));
    return static_cast<T>((static_cast<float>(q) - static_cast<float>(zero_point)) * scale);
  });
  pointwise(iter_mask, [=] __host__ __device__(T x, float scale, ZeroPoint zero_point) -> bool {
    return range.has(quantized_with(x, scale, zero_point));
  });
}
void cachemask_channels(at::TensorIterator& iter, at::TensorIterator& iter_mask, int64_t quant_min, int64_t quant_max) {
  const Range range{quant_min, quant_max};
  MUSA_DISPATCH(iter.dtype(0), "fake_quantize_per_channel", (MUSA_FLOATING), {
    if (at::isFloatingType(iter.input_dtype(2))) {
      round_channels<scalar_t, float>(iter, iter_mask, range);
    } else {
      round_channels<scalar_t, int32_t>(iter, iter_mask, range);
    }
  });
}

// ---- gradients of the value, the scale and the zero point

template <typename T>
struct Gradients {
  T value, scale, zero_point;
};

template <typename T>
__host__ __device__ C10_ALWAYS_INLINE Gradients<T> gradients_at(
    T value, T gradient, float scale, float inverse, int64_t zero_point, Range range, float factor) {
  const float x = static_cast<float>(value), g = static_cast<float>(gradient);
  const int64_t q = static_cast<int64_t>(std::nearbyint(x * inverse)) + zero_point;
  const float result = static_cast<float>(range.limit(q) - zero_point) * scale;
  if (range.has(q)) {
    return {gradient, static_cast<T>(g * (result - x) * inverse * factor), T(0)};
  }
  const auto steps = static_cast<float>(range.limit(q) - zero_point);
  return {T(0), static_cast<T>(g * steps * factor), static_cast<T>(-g * scale * factor)};
}

// Operand order: three outputs, the input, the incoming gradient, then the operands that `parameters` reads.
template <typename T, int operands, typename Parameters>
void write_gradients(at::TensorIterator& iter, Range range, float factor, const Parameters& parameters) {
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto& piece : iter.with_32bit_indexing()) {
      write_gradients<T, operands>(piece, range, factor, parameters);
    }
    return;
  }
  const auto offsets = make_offset_calculator<operands>(iter);
  std::array<char*, operands> data{};
  for (int i = 0; i < operands; ++i) {
    data[i] = static_cast<char*>(iter.data_ptr(i));
  }
  for_each(iter.numel(), [=] __device__(int64_t i) {
    const auto at = offsets.get(static_cast<uint32_t>(i));
    const auto [scale, inverse, zero_point] = parameters(data, at);
    const Gradients<T> result = gradients_at(
        *reinterpret_cast<const T*>(data[3] + at[3]), *reinterpret_cast<const T*>(data[4] + at[4]), scale, inverse,
        zero_point, range, factor);
    *reinterpret_cast<T*>(data[0] + at[0]) = result.value;
    *reinterpret_cast<T*>(data[1] + at[1]) = result.scale;
    *reinterpret_cast<T*>(data[2] + at[2]) = result.zero_point;
  });
}

struct Parameters {
  float scale, inverse;
  int64_t zero_point;
};

struct Given {
  Parameters parameters;

  template <typename Data, typename Offsets>
  __host__ __device__ Parameters operator()(const Data&, const Offsets&) const {
    return parameters;
  }
};

struct OfChannel {
  at::ScalarType scale_dtype, zero_point_dtype;

  template <typename Data, typename Offsets>
  __host__ __device__ Parameters operator()(const Data& data, const Offsets& at) const {
    const float scale = c10::fetch_and_cast<float>(scale_dtype, data[5] + at[5]);
    return {scale, 1.0f / scale, c10::fetch_and_cast<int64_t>(zero_point_dtype, data[6] + at[6])};
  }
};

void gradients(
    at::TensorIterator& iter, float scale, float inverse, int64_t zero_point, int64_t quant_min, int64_t quant_max,
    float grad_factor) {
  MUSA_DISPATCH(iter.dtype(0), "fake_quantize_learnable_backward", (MUSA_FLOATING), {
    write_gradients<scalar_t, 5>(iter, Range{quant_min, quant_max}, grad_factor, Given{{scale, inverse, zero_point}});
  });
}

void gradients_of_channels(at::TensorIterator& iter, int64_t quant_min, int64_t quant_max, float grad_factor) {
  MUSA_DISPATCH(iter.dtype(0), "fake_quantize_learnable_backward", (MUSA_FLOATING), {
    write_gradients<scalar_t, 7>(
        iter, Range{quant_min, quant_max}, grad_factor, OfChannel{iter.dtype(5), iter.dtype(6)});
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_tensor_cachemask_stub, &musa_ops_ported::cachemask)
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_tensor_cachemask_tensor_qparams_stub, &musa_ops_ported::cachemask_on_device)
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_per_channel_cachemask_stub, &musa_ops_ported::cachemask_channels)
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_grad_learnable_tensor_stub, &musa_ops_ported::gradients)
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_grad_learnable_channel_stub, &musa_ops_ported::gradients_of_channels)
} // namespace at::native
