// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Running results along a dimension: a block per line, its threads in chunks, the chunks' results scanned in shared memory.
#include <ATen/core/Tensor.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/Resize.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/complex.h>

#include <limits>

#include "engines/contiguous.h"
#include "engines/dispatch.h"
#include "engines/lines.h"
#include "engines/overlap.h"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

constexpr int kScanThreads = 256; // at most

// Op: Value identity(), Value load(T, k), Value combine(earlier, later), void store(place, Value).
template <typename T, typename Op>
__global__ void C10_LAUNCH_BOUNDS_1(kScanThreads) scan_kernel(const T* const in, const Lines lines, const Op op) {
  using Value = typename Op::Value;
  alignas(Value) __shared__ char room[kScanThreads * sizeof(Value)];
  Value* const ends = reinterpret_cast<Value*>(room);
  const int threads = blockDim.x;
  for (int64_t line = blockIdx.x; line < lines.count; line += gridDim.x) {
    const int64_t start = lines.start(line);
    const int64_t chunk = (lines.size + threads - 1) / threads;
    const int64_t begin = threadIdx.x * chunk < lines.size ? threadIdx.x * chunk : lines.size;
    const int64_t end = begin + chunk < lines.size ? begin + chunk : lines.size;
    if (threads > 1) {
      Value own = op.identity();
      for (int64_t k = begin; k < end; ++k) {
        own = op.combine(own, op.load(in[start + k * lines.stride], k));
      }
      ends[threadIdx.x] = own;
      __syncthreads();
    }
    Value running = op.identity();
    for (int i = 0; i < static_cast<int>(threadIdx.x); ++i) {
      running = op.combine(running, ends[i]);
    }
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = start + k * lines.stride;
      running = op.combine(running, op.load(in[at], k));
      op.store(at, running);
    }
    if (threads > 1) {
      __syncthreads();
    }
  }
}

template <typename T, typename Op>
void scan(const at::Tensor& self, int64_t dim, const Op& op) {
  const Lines lines(self, dim);
  if (self.numel() == 0) {
    return;
  }
  // A thread has 32 elements at least. An integrated GPU has few processors to keep busy, and pays more for each thread.
  const bool integrated = c10::musa::device_properties(c10::musa::current_device()).integrated != 0;
  const int most = integrated ? 64 : kScanThreads;
  int threads = 1;
  while (threads < most && lines.size > 32 * threads) {
    threads *= 2;
  }
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(lines.count, 1 << 16));
  scan_kernel<T, Op><<<blocks, threads, 0, c10::musa::getCurrentMUSAStream()>>>(self.const_data_ptr<T>(), lines, op);
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

template <typename T>
struct RunningSum {
  using Value = at::opmath_type<T>;
  T* out;
  __device__ Value identity() const { return Value(0); }
  __device__ Value load(T x, int64_t) const { return static_cast<Value>(x); }
  __device__ Value combine(Value a, Value b) const { return a + b; }
  __device__ void store(int64_t at, Value x) const { out[at] = static_cast<T>(x); }
};
template <typename T>
struct RunningProduct : RunningSum<T> {
  using Value = at::opmath_type<T>;
  __device__ Value identity() const { return Value(1); }
  __device__ Value combine(Value a, Value b) const { return a * b; }
};

void cumsum(const at::Tensor& result, const at::Tensor& self, int64_t dim) {
  check_overlap(result, self);
  const at::Tensor in = self.to(result.scalar_type()).contiguous();
  write_contiguous(result, [&](const at::Tensor& out) {
    MUSA_DISPATCH(in.scalar_type(), "cumsum", (MUSA_NUMBERS), {
      scan<scalar_t>(in, dim, RunningSum<scalar_t>{out.mutable_data_ptr<scalar_t>()});
    });
  });
}
void cumprod(const at::Tensor& result, const at::Tensor& self, int64_t dim) {
  check_overlap(result, self);
  const at::Tensor in = self.to(result.scalar_type()).contiguous();
  write_contiguous(result, [&](const at::Tensor& out) {
    MUSA_DISPATCH(in.scalar_type(), "cumprod", (MUSA_NUMBERS), {
      scan<scalar_t>(in, dim, RunningProduct<scalar_t>{{out.mutable_data_ptr<scalar_t>()}});
    });
  });
}

// A sum of exponentials as the largest exponent and the sum of the others' ratios to it: one logarithm at the end.
template <typename T>
struct Exponentials {
  T largest, ratios;
};

template <typename T>
struct RunningLogSum {
  using Real = at::opmath_type<T>;
  using Value = Exponentials<Real>;
  T* out;

  // The sum of nothing has no exponent; its ratios are 0.
  __device__ Value identity() const { return {Real(0), Real(0)}; }
  __device__ Value load(T x, int64_t) const { return {static_cast<Real>(x), Real(1)}; }
  __device__ Value combine(Value a, Value b) const {
    if (a.ratios == Real(0) || b.ratios == Real(0)) {
      return a.ratios == Real(0) ? b : a;
    }
    const bool swap = a.largest < b.largest || b.largest != b.largest;
    const Value high = swap ? b : a, low = swap ? a : b;
    if (std::isinf(high.largest) && high.largest == low.largest) {
      return high; // infinities of one sign have no difference
    }
    return {high.largest, high.ratios + low.ratios * std::exp(low.largest - high.largest)};
  }
  __device__ void store(int64_t at, Value x) const { out[at] = static_cast<T>(x.largest + std::log(x.ratios)); }
};
void logcumsumexp(at::Tensor& result, const at::Tensor& self, int64_t dim) {
  at::native::resize_output(result, self.sizes());
  check_overlap(result, self);
  const at::Tensor in = self.contiguous();
  write_contiguous(result, [&](const at::Tensor& out) {
    MUSA_DISPATCH(in.scalar_type(), "logcumsumexp", (MUSA_FLOATING), {
      scan<scalar_t>(in, dim, RunningLogSum<scalar_t>{out.mutable_data_ptr<scalar_t>()});
    });
  });
}

// The best so far and where it was; of equals the last, and a NaN stays.
template <typename T>
struct Best {
  T value;
  int64_t index; // -1: none yet
};
template <typename T, bool largest>
struct RunningBest {
  using Value = Best<T>;
  T* values;
  int64_t* indices;
  __device__ Value identity() const { return {T(0), -1}; }
  __device__ Value load(T x, int64_t k) const { return {x, k}; }
  __device__ Value combine(Value a, Value b) const {
    if (a.index < 0 || b.index < 0) {
      return a.index < 0 ? b : a;
    }
    const bool later = b.value != b.value || (a.value == a.value && (largest ? b.value >= a.value : b.value <= a.value));
    return later ? b : a;
  }
  __device__ void store(int64_t at, Value best) const {
    values[at] = best.value;
    indices[at] = best.index;
  }
};
template <bool largest>
void running_best(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t dim) {
  const at::Tensor in = self.contiguous();
  write_contiguous(values, [&](const at::Tensor& best) {
    write_contiguous(indices, [&](const at::Tensor& places) {
      MUSA_DISPATCH(self.scalar_type(), "cummax or cummin", (MUSA_REAL, at::kBool), {
        const RunningBest<scalar_t, largest> op{best.mutable_data_ptr<scalar_t>(), places.mutable_data_ptr<int64_t>()};
        scan<scalar_t>(in, dim, op);
      });
    });
  });
}

} // namespace

void _cummax_helper(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t dim) {
  running_best<true>(self, values, indices, dim);
}
void _cummin_helper(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t dim) {
  running_best<false>(self, values, indices, dim);
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(cumsum_stub, &musa_ops_ported::cumsum)
REGISTER_PRIVATEUSE1_DISPATCH(cumprod_stub, &musa_ops_ported::cumprod)
REGISTER_PRIVATEUSE1_DISPATCH(logcumsumexp_stub, &musa_ops_ported::logcumsumexp)
} // namespace at::native
