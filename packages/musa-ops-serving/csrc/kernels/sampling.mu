// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Penalties of logits, and the choice of the most probable tokens without sorting: the order of float32 numbers is that of
// their bits, so the smallest kept logit is found digit by digit of 8 bits, from histograms in shared memory.
#include "kernels/launch.h"
#include "kernels/numbers.muh"

namespace musa_ops_serving {
namespace {

constexpr int kRowThreads = 512;
constexpr int kBins = 256, kSome = 16;

// Keeps the order of the numbers; both zeros are equal, and NaN is above infinity.
__device__ inline unsigned ordered(float value) {
  const unsigned bits = value == 0.0f ? 0u : __float_as_uint(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// Probabilities are whole multiples of 2^-40 of the largest, so that a sum does not depend on the order of its terms.
__device__ inline unsigned long long mass_of(float value, float maximum) {
  const float share = std::exp(value - maximum);
  return static_cast<unsigned long long>((share < 1.0f ? share : 1.0f) * 1099511627776.0f);
}

struct Histogram {
  unsigned long long bins[kBins], groups[kSome];
};

// Returns the largest key for which the weights of the elements that are not smaller add up to at least `wanted`, which is not
// more than the sum of all. weight(i, key) is called for all elements in each of four passes. All threads of the block call it.
template <typename Key, typename Weight>
__device__ unsigned select(
    Histogram& room, int64_t size, unsigned long long wanted, const Key& key_of, const Weight& weight) {
  const int thread = static_cast<int>(threadIdx.x);
  unsigned prefix = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (thread < kBins) {
      room.bins[thread] = 0;
    }
    __syncthreads();
    const unsigned mask = shift == 24 ? 0u : ~0u << (shift + 8);
    for (int64_t i = thread; i < size; i += kRowThreads) {
      const unsigned key = key_of(i);
      if ((key & mask) == prefix) {
        if (const unsigned long long own = weight(i, key); own != 0) {
          atomicAdd(&room.bins[(key >> shift) & 255u], own);
        }
      }
    }
    __syncthreads();
    if (thread < kSome) {
      unsigned long long sum = 0;
      for (int i = 0; i < kSome; ++i) {
        sum += room.bins[thread * kSome + i];
      }
      room.groups[thread] = sum;
    }
    __syncthreads();
    int group = kSome - 1;
    for (; group > 0 && room.groups[group] < wanted; --group) {
      wanted -= room.groups[group];
    }
    int bin = group * kSome + kSome - 1;
    for (; bin > group * kSome && room.bins[bin] < wanted; --bin) {
      wanted -= room.bins[bin];
    }
    prefix |= static_cast<unsigned>(bin) << shift;
    __syncthreads(); // the next pass overwrites the bins
  }
  return prefix;
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads) choose_kernel(const Choice c) {
  __shared__ Histogram room;
  __shared__ float maxima[kRowThreads];
  const int64_t row = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const T* const logits = static_cast<const T*>(c.logits) + row * c.row_stride;
  const auto key_of = [&](int64_t i) { return ordered(wide(logits[i])); };
  unsigned least = 0;
  if (c.k.data != nullptr) {
    const int64_t k = integer(c.k, row);
    if (k > 0 && k < c.size) {
      least = select(room, c.size, k, key_of, [](int64_t, unsigned) { return 1ull; });
    }
  }
  const float p = c.p != nullptr ? c.p[row] : 1.0f;
  if (p < 1.0f) {
    float maximum = -INFINITY;
    for (int64_t i = thread; i < c.size; i += kRowThreads) {
      const float value = wide(logits[i]);
      maximum = value > maximum ? value : maximum;
    }
    maxima[thread] = maximum;
    __syncthreads();
    if (thread < kSome) {
      for (int i = thread; i < kRowThreads; i += kSome) {
        maximum = maxima[i] > maximum ? maxima[i] : maximum;
      }
      maxima[thread] = maximum; // other threads of this step read other elements
    }
    __syncthreads();
    for (int i = 0; i < kSome; ++i) {
      maximum = maxima[i] > maximum ? maxima[i] : maximum;
    }
    const auto weight = [&](int64_t i, unsigned key) {
      return key >= least ? mass_of(wide(logits[i]), maximum) : 0ull;
    };
    if (thread == 0) {
      room.groups[0] = 0;
    }
    __syncthreads();
    unsigned long long own = 0;
    for (int64_t i = thread; i < c.size; i += kRowThreads) {
      own += weight(i, key_of(i));
    }
    atomicAdd(&room.groups[0], own);
    __syncthreads();
    const unsigned long long total = room.groups[0];
    __syncthreads();
    // The product with p in whole numbers, because a device may lack float64. At least the largest logit is kept.
    const auto share = static_cast<unsigned long long>((p > 0.0f ? p : 0.0f) * 16777216.0f);
    const unsigned long long wanted = (total >> 24) * share + ((total & 0xffffffull) * share >> 24);
    if (maximum > -INFINITY) {
      const unsigned nucleus = select(room, c.size, wanted > 1 ? wanted : 1ull, key_of, weight);
      least = nucleus > least ? nucleus : least;
    }
  }
  T* const out = static_cast<T*>(c.out) + row * c.size;
  for (int64_t i = thread; i < c.size; i += kRowThreads) {
    const T value = logits[i];
    out[i] = ordered(wide(value)) >= least ? value : narrow<T>(-INFINITY, false);
  }
}

template <typename T>
void penalize_elements(const Penalties& p, musaStream_t stream) {
  for_each(p.rows * p.size, stream, [=] __device__(int64_t i) {
    const int64_t at = take(i, p.size);
    const int64_t count = integer(p.counts, i * p.counts_stride + at);
    const bool seen = count > 0 || p.prompt_mask[i * p.mask_stride + at];
    if (!seen) {
      return;
    }
    T* const place = static_cast<T*>(p.logits) + i * p.logits_stride + at;
    float logit = wide(*place);
    const float factor = p.repetition[i];
    logit = logit > 0 ? logit / factor : logit * factor;
    logit -= p.frequency[i] * static_cast<float>(count > 0 ? count : 0);
    logit -= count > 0 ? p.presence[i] : 0.0f;
    store(place, logit);
  });
}

} // namespace

void keep_most_probable(const Choice& choice, Dtype dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    choose_kernel<T><<<static_cast<unsigned>(choice.rows), kRowThreads, 0, stream>>>(choice);
  });
}

void penalize(const Penalties& p, Dtype dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() { penalize_elements<T>(p, stream); });
}

} // namespace musa_ops_serving
