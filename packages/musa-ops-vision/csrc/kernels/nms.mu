// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Non-maximum suppression. One kernel compares boxes in tiles of 64 x 64 and writes a 64-bit word of overlaps per box
// and tile. A second kernel with one block visits boxes in descending order of score and drops those that overlap a
// kept box. The host reads only the number of kept boxes.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/musa/MUSAGuard.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "checks.h"
#include "dispatch.h"
#include "launch.muh"
#include "operators.h"

namespace musa_ops_vision {
namespace {

constexpr int kTile = 64; // boxes per tile: one bit each in a word
constexpr int64_t kMostWords = int64_t{1} << 23; // overlap words per launch: 64 MiB

template <typename Real>
struct Box {
  Real x1, y1, x2, y2;

  template <typename T>
  static __device__ Box load(const T* from) {
    return {
        static_cast<Real>(from[0]), static_cast<Real>(from[1]), static_cast<Real>(from[2]), static_cast<Real>(from[3])};
  }
  __device__ Real area() const { return (x2 - x1) * (y2 - y1); }
};

template <typename Real>
__device__ bool overlap(const Box<Real>& a, const Box<Real>& b, Real limit) {
  const Real width = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1);
  const Real height = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1);
  const Real shared = (width > 0 ? width : 0) * (height > 0 ? height : 0);
  return shared / (a.area() + b.area() - shared) > limit;
}

// Bit j of overlaps[(row - first) * words + tile] is set if box `row` overlaps the later box tile * 64 + j. Boxes are
// numbered in descending order of score.
template <typename T, typename Real>
__global__ void C10_LAUNCH_BOUNDS_1(kTile) compare_tiles(
    const T* boxes, const int64_t* order, const int64_t count, const int64_t first, const int64_t words,
    const Real limit, uint64_t* overlaps) {
  const int64_t tile = blockIdx.x;
  const int64_t row_tile = first / kTile + blockIdx.y;
  if (tile < row_tile) {
    return; // a tile of earlier boxes
  }
  __shared__ Real columns[kTile][4];
  const int64_t begin = tile * kTile;
  const int size = static_cast<int>(count - begin < kTile ? count - begin : kTile);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < size) {
    const Box<Real> box = Box<Real>::load(boxes + order[begin + thread] * 4);
    columns[thread][0] = box.x1;
    columns[thread][1] = box.y1;
    columns[thread][2] = box.x2;
    columns[thread][3] = box.y2;
  }
  __syncthreads();
  const int64_t row = row_tile * kTile + thread;
  if (row < count) {
    const Box<Real> box = Box<Real>::load(boxes + order[row] * 4);
    uint64_t bits = 0;
    for (int j = tile == row_tile ? thread + 1 : 0; j < size; ++j) {
      const Box<Real> other{columns[j][0], columns[j][1], columns[j][2], columns[j][3]};
      bits |= static_cast<uint64_t>(overlap(box, other, limit)) << j;
    }
    overlaps[(row - first) * words + tile] = bits;
  }
}

// Visits the tiles from box `first` on. `removed` has one bit per box; `kept` receives the indices of kept boxes in
// `dets`.
__global__ void C10_LAUNCH_BOUNDS_1(kThreads) keep_best(
    const uint64_t* overlaps, const int64_t* order, const int64_t count, const int64_t first, const int64_t end,
    const int64_t words, uint64_t* removed, int64_t* kept, int64_t* kept_count) {
  __shared__ uint64_t within[kTile];
  __shared__ uint64_t chosen;
  __shared__ int64_t before;
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t begin = first; begin < end; begin += kTile) {
    const int64_t tile = begin / kTile;
    const int size = static_cast<int>(count - begin < kTile ? count - begin : kTile);
    if (thread < size) {
      within[thread] = overlaps[(begin - first + thread) * words + tile];
    }
    __syncthreads();
    if (thread == 0) {
      uint64_t gone = removed[tile], keep = 0;
      for (int j = 0; j < size; ++j) {
        if ((gone >> j & 1) == 0) {
          keep |= uint64_t{1} << j;
          gone |= within[j];
        }
      }
      chosen = keep;
      before = *kept_count;
      *kept_count = before + __popcll(keep);
    }
    __syncthreads();
    if (thread < size && (chosen >> thread & 1) != 0) {
      kept[before + __popcll(chosen & ((uint64_t{1} << thread) - 1))] = order[begin + thread];
    }
    for (int64_t word = tile + 1 + thread; word < words; word += blockDim.x) {
      uint64_t gone = removed[word];
      for (int j = 0; j < size; ++j) {
        if ((chosen >> j & 1) != 0) {
          gone |= overlaps[(begin - first + j) * words + word];
        }
      }
      removed[word] = gone;
    }
    __syncthreads(); // the next iteration overwrites `within` and `chosen`
  }
}

// Returns the largest Real that is not above the threshold. A Real exceeds the result exactly if it exceeds the
// double threshold, so kernels need no comparison in double precision.
template <typename Real>
Real limit_of(double threshold) {
  const Real nearest = static_cast<Real>(threshold);
  return static_cast<double>(nearest) > threshold ? std::nextafter(nearest, -std::numeric_limits<Real>::infinity())
                                                  : nearest;
}

} // namespace

at::Tensor nms(const at::Tensor& dets, const at::Tensor& scores, double iou_threshold) {
  check_boxes(dets, scores);
  const c10::musa::MUSAGuard guard(dets.device());
  const int64_t count = dets.size(0);
  const auto whole = dets.options().dtype(at::kLong);
  at::Tensor kept = at::empty({count}, whole);
  if (count == 0) {
    return kept;
  }
  const at::Tensor boxes = dets.contiguous();
  const at::Tensor order = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true)).contiguous();
  const int64_t words = (count + kTile - 1) / kTile;
  const int64_t rows_at_a_time = std::max<int64_t>(kMostWords / words / kTile, 1) * kTile;
  const at::Tensor overlaps = at::empty({std::min(rows_at_a_time, words * kTile), words}, whole);
  const at::Tensor removed = at::zeros({words}, whole);
  const at::Tensor kept_count = at::zeros({1}, whole);
  const auto bits_of = [](const at::Tensor& tensor) {
    return reinterpret_cast<uint64_t*>(tensor.mutable_data_ptr<int64_t>());
  };
  const auto stream = c10::musa::getCurrentMUSAStream();
  // With few boxes there are few words to update, and every thread of a block waits at the barriers.
  const int threads = static_cast<int>(std::clamp<int64_t>((words + kTile - 1) / kTile * kTile, kTile, kThreads));
  for (int64_t first = 0; first < count; first += rows_at_a_time) {
    const int64_t end = std::min(first + rows_at_a_time, count);
    const dim3 tiles(static_cast<unsigned>(words), static_cast<unsigned>((end - first + kTile - 1) / kTile));
    MUSA_VISION_DISPATCH(dets.scalar_type(), "nms", {
      compare_tiles<scalar_t, op_t><<<tiles, kTile, 0, stream>>>(
          boxes.const_data_ptr<scalar_t>(), order.const_data_ptr<int64_t>(), count, first, words,
          limit_of<op_t>(iou_threshold), bits_of(overlaps));
    });
    C10_MUSA_KERNEL_LAUNCH_CHECK();
    keep_best<<<1, threads, 0, stream>>>(
        bits_of(overlaps), order.const_data_ptr<int64_t>(), count, first, end, words, bits_of(removed),
        kept.mutable_data_ptr<int64_t>(), kept_count.mutable_data_ptr<int64_t>());
    C10_MUSA_KERNEL_LAUNCH_CHECK();
  }
  return kept.narrow(0, 0, kept_count.item<int64_t>());
}

} // namespace musa_ops_vision
