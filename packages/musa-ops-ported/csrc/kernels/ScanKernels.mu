// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Scans along a dimension, in tiles in which adjacent threads access adjacent addresses.
#include <ATen/core/Tensor.h>
#include <ATen/native/ReduceOps.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/complex.h>
#include <c10/util/Load.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "engines/aten.h"
#include "engines/block_scan.muh"
#include "engines/contiguous.h"
#include "engines/dispatch.h"
#include "engines/lines.h"
#include "engines/overlap.h"
#include "kernels/ScanKernels.h"

namespace musa_ops_ported {
namespace {

constexpr int kScanThreads = 256;    // per block, at most

// The distribution of lines over blocks: `together` adjacent lines per block, in parts of `chunk` elements.
struct ScanParts {
  int64_t parts, chunk;
  int together;
  bool staged;      // the block has one line, whose elements are adjacent in memory
  bool only_totals; // writes only the total of each part of each line
  void* totals;     // used if there are several parts: written by the first pass, read by the second
};

template <typename Value>
inline constexpr int kScanItems = sizeof(Value) <= 4 ? 16
    : sizeof(Value) <= 8                             ? 8
                                                     : 4; // per thread: 64 bytes

// Op: Value identity(), Value load(T, k), Value combine(earlier, later), void store(place, Value).
//
// Thread (x, y) has `items` adjacent elements of line x. All are loaded before the first is used.
template <typename T, typename Op>
__global__ void C10_LAUNCH_BOUNDS_1(kScanThreads)
    scan_tiles(const T* const in, const Lines lines, const ScanParts of, const Op op) {
  using Value = typename Op::Value;
  constexpr int items = kScanItems<Value>;
  static_assert(kScanThreads * (items + 3) * sizeof(Value) <= 28672, "the shared memory of a block on mp_21");
  alignas(Value) __shared__ char room_bytes[kScanThreads * (items + 1) * sizeof(Value)];
  alignas(Value) __shared__ char ends_bytes[2 * kScanThreads * sizeof(Value)];
  Value* const room = reinterpret_cast<Value*>(room_bytes);
  Value* const ends = reinterpret_cast<Value*>(ends_bytes);
  Value* const totals = static_cast<Value*>(of.totals);
  const int threads = blockDim.x;
  const int thread = threadIdx.x;
  const int x = thread % of.together;
  const int y = thread / of.together;
  const int64_t tile = threads / of.together * items;
  const int64_t groups = (lines.count + of.together - 1) / of.together;
  for (int64_t unit = blockIdx.x; unit < groups * of.parts; unit += gridDim.x) {
    const int64_t part = unit / groups;
    const int64_t line = (unit - part * groups) * of.together + x;
    const bool within = line < lines.count;
    const int64_t start = within ? lines.start(line) : 0;
    Value carry = op.identity();
    if (part > 0 && !of.only_totals) {
      const int64_t share = (part + threads / of.together - 1) / (threads / of.together);
      const int64_t last = (y + 1) * share < part ? (y + 1) * share : part;
      Value own = op.identity();
      for (int64_t i = y * share; within && i < last; ++i) {
        own = op.combine(own, totals[i * lines.count + line]);
      }
      combined_before(op, own, ends, carry, of.together);
      __syncthreads();
    }
    const int64_t end = (part + 1) * of.chunk < lines.size ? (part + 1) * of.chunk : lines.size;
    for (int64_t begin = part * of.chunk; begin < end; begin += tile) {
      Value values[items];
      if (of.staged) {
#pragma unroll
        for (int k = 0; k < items; ++k) {
          const int64_t at = begin + k * threads + thread;
          values[k] = at < end ? op.load(c10::load(in + start + at), at) : op.identity();
        }
#pragma unroll
        for (int k = 0; k < items; ++k) {
          room[striped_place<items>(k)] = values[k];
        }
        __syncthreads();
        take_blocked(values, room);
      } else {
        const int64_t first = begin + y * items;
        const int left = !within || first >= end ? 0 : static_cast<int>(end - first < items ? end - first : items);
        const T* const from = in + start + first * lines.stride;
#pragma unroll
        for (int k = 0; k < items; ++k) {
          values[k] = k < left ? op.load(c10::load(from + k * lines.stride), first + k) : op.identity();
        }
      }
      Value own = values[0];
#pragma unroll
      for (int k = 1; k < items; ++k) {
        own = op.combine(own, values[k]);
      }
      Value total;
      Value running = op.combine(carry, combined_before(op, own, ends, total, of.together));
      carry = op.combine(carry, total);
      if (!of.only_totals) {
#pragma unroll
        for (int k = 0; k < items; ++k) {
          running = op.combine(running, values[k]);
          values[k] = running;
        }
        if (of.staged) {
#pragma unroll
          for (int k = 0; k < items; ++k) {
            room[blocked_place<items>(k)] = values[k];
          }
          __syncthreads();
#pragma unroll
          for (int k = 0; k < items; ++k) {
            const int64_t at = begin + k * threads + thread;
            if (at < end) {
              op.store(start + at, room[striped_place<items>(k)]);
            }
          }
        } else {
          const int64_t first = begin + y * items;
#pragma unroll
          for (int k = 0; k < items; ++k) {
            if (within && first + k < end) {
              op.store(start + (first + k) * lines.stride, values[k]);
            }
          }
        }
      }
      __syncthreads();
    }
    if (of.only_totals && within && y == 0) {
      totals[part * lines.count + line] = carry;
    }
  }
}

template <typename T, typename Op>
void scan(const at::Tensor& self, int64_t dim, const Op& op) {
  const Lines lines(self, dim);
  if (self.numel() == 0) {
    return;
  }
  using Value = typename Op::Value;
  constexpr int items = kScanItems<Value>;
  ScanParts of{};
  // In shorter lines, adjacent threads share cache lines without staging.
  of.staged = lines.stride == 1 && lines.size > 4 * items;
  of.together = 1;
  int along = of.staged ? 32 : 1; // threads per line
  while (along < (of.staged ? kScanThreads : 8) && along * items < lines.size) {
    along *= 2;
  }
  if (!of.staged) {
    of.together = kScanThreads / along;
    while (of.together > 1 && of.together / 2 >= lines.count) {
      of.together /= 2;
    }
    along = kScanThreads / of.together;
  }
  const int64_t tile = along * items;
  const int64_t tiles = (lines.size + tile - 1) / tile;
  const int64_t groups = (lines.count + of.together - 1) / of.together;
  const int64_t processors = c10::musa::device_properties(c10::musa::current_device()).multiProcessorCount;
  // Splits lines into parts, which takes a second pass over the elements, only if lines do not fill all
  // multiprocessors.
  of.chunk = tile * (groups >= processors ? tiles : std::clamp<int64_t>(groups * tiles / (4 * processors), 1, tiles));
  of.parts = std::max<int64_t>((lines.size + of.chunk - 1) / of.chunk, 1);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(groups * of.parts, 1 << 20));
  const auto launch = [&] {
    scan_tiles<T, Op><<<blocks, along * of.together, 0, c10::musa::getCurrentMUSAStream()>>>(
        self.const_data_ptr<T>(), lines, of, op);
    C10_MUSA_KERNEL_LAUNCH_CHECK();
  };
  at::Tensor totals;
  if (of.parts > 1) {
    const int64_t bytes = lines.count * of.parts * static_cast<int64_t>(sizeof(Value));
    totals = aten::empty({bytes}, self.options().dtype(at::kByte));
    of.totals = totals.mutable_data_ptr();
    of.only_totals = true;
    launch();
    of.only_totals = false;
  }
  launch();
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

// A sum of exponentials, stored as the largest exponent and the sum of ratios to it, so that one logarithm suffices.
template <typename T>
struct Exponentials {
  T largest, ratios;
};

template <typename T>
struct RunningLogSum {
  using Real = at::opmath_type<T>;
  using Value = Exponentials<Real>;
  T* out;

  // ratios == 0 marks the empty sum.
  __device__ Value identity() const { return {Real(0), Real(0)}; }
  __device__ Value load(T x, int64_t) const { return {static_cast<Real>(x), Real(1)}; }
  __device__ Value combine(Value a, Value b) const {
    if (a.ratios == Real(0) || b.ratios == Real(0)) {
      return a.ratios == Real(0) ? b : a;
    }
    const bool swap = a.largest < b.largest || b.largest != b.largest;
    const Value high = swap ? b : a, low = swap ? a : b;
    if (std::isinf(high.largest) && high.largest == low.largest) {
      return high; // infinity - infinity is NaN
    }
    return {high.largest, high.ratios + low.ratios * std::exp(low.largest - high.largest)};
  }
  __device__ void store(int64_t at, Value x) const { out[at] = static_cast<T>(x.largest + std::log(x.ratios)); }
};

// The same for complex numbers. The imaginary part is that of the term with the largest real part, plus an angle, so it
// may leave the interval from -pi to pi.
template <typename T>
struct RunningComplexLogSum {
  using Complex = c10::complex<typename at::opmath_type<T>::value_type>;
  using Part = typename Complex::value_type;
  using Value = Complex;
  T* out;

  // No term: a flag beside the number would not fit into shared memory.
  __device__ Value identity() const {
    return {-std::numeric_limits<Part>::infinity(), std::numeric_limits<Part>::max()};
  }
  __device__ Value load(T x, int64_t) const { return x != x ? not_a_number() : static_cast<Complex>(x); }
  __device__ Value not_a_number() const {
    constexpr Part nan = std::numeric_limits<Part>::quiet_NaN();
    return {nan, nan};
  }
  __device__ Value combine(Value a, Value b) const {
    if (a == identity() || b == identity()) {
      return a == identity() ? b : a;
    }
    if (a != a || b != b) {
      return not_a_number();
    }
    const bool swap = !(a.real() < b.real());
    const Complex high = swap ? a : b, low = swap ? b : a;
    if (std::isinf(high.real()) && high.real() == low.real()) { // infinity - infinity is NaN
      return high.real() < 0 ? low : std::log(std::exp(a) + std::exp(b));
    }
    const Complex ratio = std::exp(low - high);
    const Part x = ratio.real(), y = ratio.imag();
    // log |1 + ratio|: the first form cancels digits near -1, the second near 0.
    const Part length = x < Part(-0.25) ? std::log(std::hypot(1 + x, y)) : std::log1p(2 * x + x * x + y * y) / 2;
    return high + Complex(length, std::atan2(y, 1 + x));
  }
  __device__ void store(int64_t at, Value x) const { out[at] = static_cast<T>(x); }
};
void logcumsumexp(at::Tensor& result, const at::Tensor& self, int64_t dim) {
  aten::resize_output(result, self.sizes());
  check_overlap(result, self);
  const at::Tensor in = self.contiguous();
  write_contiguous(result, [&](const at::Tensor& out) {
    MUSA_DISPATCH(in.scalar_type(), "logcumsumexp", (MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES)), {
      using Sum =
          std::conditional_t<c10::is_complex<scalar_t>::value, RunningComplexLogSum<scalar_t>, RunningLogSum<scalar_t>>;
      scan<scalar_t>(in, dim, Sum{out.mutable_data_ptr<scalar_t>()});
    });
  });
}

// The best value so far and its index. Among equal values the last one is kept; NaN is kept once found.
template <typename T>
struct Best {
  T value;
  int64_t index; // -1: no value yet
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
    const bool later =
        b.value != b.value || (a.value == a.value && (largest ? b.value >= a.value : b.value <= a.value));
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
