// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Writes keys and values of new tokens into the slots of a paged cache.
#include "kernels/launch.h"
#include "kernels/numbers.muh"

namespace musa_ops_serving {
namespace {

// A thread copies `count` adjacent elements of a key or value.
template <typename T, typename C, int count>
void write_vectors(const CacheWrite& w, bool five_bits, musaStream_t stream) {
  const int key_parts = w.key_size / count, value_parts = w.value_size / count;
  for_each(w.tokens * w.heads * (key_parts + value_parts), stream, [=] __device__(int64_t i) {
    int64_t part = take(i, key_parts + value_parts);
    const int64_t head = take(i, w.heads);
    const int64_t slot = w.slots[i];
    if (slot < 0) {
      return; // padding
    }
    const int64_t block = quotient(slot, w.block_size);
    DEVICE_ASSERT(block < w.blocks && "reshape_and_cache: a slot is outside of the cache");
    const bool is_value = part >= key_parts;
    part = (is_value ? part - key_parts : part) * count;
    const Heads& from = is_value ? w.value : w.key;
    const Cache& to = is_value ? w.value_cache : w.key_cache;
    const Scale& scale = is_value ? w.value_scale : w.key_scale;
    const float divisor = scale.data != nullptr ? scale.data[head * scale.step] : 1.0f;
    const auto loaded = *reinterpret_cast<const Vector<T, count>*>(
        static_cast<const T*>(from.data) + i * from.token_stride + head * from.head_stride + part);
    Vector<C, count> written;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      written.values[k] = narrow<C>(wide(loaded.values[k]) / divisor, five_bits);
    }
    *reinterpret_cast<Vector<C, count>*>(
        static_cast<C*>(to.data) + block * to.block_stride + (slot - block * w.block_size) * to.slot_stride +
        head * to.head_stride + part) = written;
  });
}

template <typename T, typename C>
void write_elements(const CacheWrite& w, bool five_bits, musaStream_t stream) {
  if (w.aligned) {
    write_vectors<T, C, kEight>(w, five_bits, stream);
  } else {
    write_vectors<T, C, 1>(w, five_bits, stream);
  }
}

} // namespace

void write_cache(const CacheWrite& write, Dtype dtype, CacheDtype cache_dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (cache_dtype == CacheDtype::kSame) {
      write_elements<T, T>(write, false, stream);
    } else {
      write_elements<T, Float8>(write, cache_dtype == CacheDtype::kFloat8E5M2, stream);
    }
  });
}

} // namespace musa_ops_serving
