// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Rotary position embedding in place. NeoX rotates element i of a head with element i + rotated / 2, GPT-J adjacent elements.
#include "kernels/launch.h"
#include "kernels/numbers.muh"

namespace musa_ops_serving {
namespace {

// A thread rotates `count` adjacent pairs.
template <typename T, typename C, bool neox, int count>
void launch(const Rotary& r, musaStream_t stream) {
  const int half = r.rotated / 2, parts = half / count, heads = r.query_heads + r.key_heads;
  for_each(r.tokens * heads * parts, stream, [=] __device__(int64_t i) {
    const int64_t at = take(i, parts) * count, head = take(i, heads);
    const int64_t position = r.positions[i];
    DEVICE_ASSERT(
        position >= 0 && position < r.cached_positions && "rotary_embedding: a position is outside of cos_sin_cache");
    const bool is_key = head >= r.query_heads;
    T* const row = row_of<T>(is_key ? r.key : r.query, i, is_key ? head - r.query_heads : head);
    const C* const cosines = static_cast<const C*>(r.cache) + position * r.rotated + at;
    float first[count], second[count], cosine[count], sine[count];
    load_some(cosines, cosine);
    load_some(cosines + half, sine);
    if constexpr (neox) {
      load_some(row + at, first);
      load_some(row + at + half, second);
    } else {
#pragma unroll
      for (int k = 0; k < count; ++k) {
        first[k] = wide(row[(at + k) * 2]);
        second[k] = wide(row[(at + k) * 2 + 1]);
      }
    }
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const float x = first[k], y = second[k];
      first[k] = x * cosine[k] - y * sine[k];
      second[k] = y * cosine[k] + x * sine[k];
    }
    if constexpr (neox) {
      store_some(row + at, first);
      store_some(row + at + half, second);
    } else {
#pragma unroll
      for (int k = 0; k < count; ++k) {
        store(row + (at + k) * 2, first[k]);
        store(row + (at + k) * 2 + 1, second[k]);
      }
    }
  });
}

template <typename T, typename C>
void launch_style(const Rotary& r, musaStream_t stream) {
  if (!r.neox) {
    launch<T, C, false, 1>(r, stream); // adjacent threads have adjacent pairs
  } else if (r.aligned) {
    launch<T, C, true, kEight>(r, stream);
  } else {
    launch<T, C, true, 1>(r, stream);
  }
}

} // namespace

void rotate(const Rotary& rotary, Dtype dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (rotary.float_cache) {
      launch_style<T, float>(rotary, stream);
    } else {
      launch_style<T, T>(rotary, stream);
    }
  });
}

} // namespace musa_ops_serving
