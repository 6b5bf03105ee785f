// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Gated activations: the activation of the first half of a row times the second half.
#include "kernels/launch.h"
#include "kernels/numbers.muh"

namespace musa_ops_serving {
namespace {

__device__ inline float activated(float x, Activation activation) {
  switch (activation) {
    case Activation::kSilu: return x / (1.0f + std::exp(-x));
    case Activation::kGelu: return 0.5f * x * (1.0f + std::erf(x * 0.70710678118654752f));
    default: {
      constexpr float kFactor = 0.79788456080286536f; // sqrt(2 / pi)
      return 0.5f * x * (1.0f + std::tanh(kFactor * (x + 0.044715f * x * x * x)));
    }
  }
}

template <typename T, int count>
void launch(const Gated& g, Activation activation, musaStream_t stream) {
  const int vectors = g.size / count;
  for_each(g.rows * vectors, stream, [=] __device__(int64_t i) {
    const int64_t at = take(i, vectors) * count;
    const T* const row = static_cast<const T*>(g.input) + i * g.row_stride + at;
    float gates[count], values[count];
    load_some(row, gates);
    load_some(row + g.size, values);
#pragma unroll
    for (int k = 0; k < count; ++k) {
      values[k] *= activated(gates[k], activation);
    }
    store_some(static_cast<T*>(g.out) + i * g.size + at, values);
  });
}

} // namespace

void activate_and_multiply(const Gated& gated, Activation activation, Dtype dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (gated.aligned) {
      launch<T, kEight>(gated, activation, stream);
    } else {
      launch<T, 1>(gated, activation, stream);
    }
  });
}

} // namespace musa_ops_serving
