// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Maximum of the pixels in each bin of a region, and its index in the plane.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSAGuard.h>

#include <cmath>
#include <limits>

#include "checks.h"
#include "dispatch.h"
#include "launch.muh"
#include "operators.h"
#include "regions.muh"

namespace musa_ops_vision {
namespace {

// The pixels of a bin. The borders of the region are rounded to pixels, and both are included.
template <typename Real>
__device__ Pixels inclusive_pixels(Real from, Real to, Real scale, int64_t bins, int64_t bin, int64_t size) {
  const int64_t first = static_cast<int64_t>(std::round(from * scale));
  const int64_t last = static_cast<int64_t>(std::round(to * scale));
  const int64_t extent = last - first + 1 > 1 ? last - first + 1 : 1;
  const Real step = static_cast<Real>(extent) / static_cast<Real>(bins);
  const int64_t begin = static_cast<int64_t>(std::floor(static_cast<Real>(bin) * step)) + first;
  const int64_t end = static_cast<int64_t>(std::ceil(static_cast<Real>(bin + 1) * step)) + first;
  return {begin < 0 ? 0 : begin > size ? size : begin, end < 0 ? 0 : end > size ? size : end};
}

template <typename T, typename Real>
struct Greatest {
  RegionSizes sizes;
  Real scale;
  const T* input;
  const T* rois;
  T* out;
  int32_t* places;

  __device__ void operator()(int64_t i) const {
    const int64_t element = i;
    const int64_t x = take(i, sizes.pooled_width);
    const int64_t y = take(i, sizes.pooled_height);
    const int64_t channel = take(i, sizes.channels);
    const T* const roi = rois + i * 5;
    const T* const plane = input + (image_of<Real>(roi, sizes.batches) * sizes.channels + channel) * sizes.plane();
    const Pixels rows = inclusive_pixels(
        static_cast<Real>(roi[2]), static_cast<Real>(roi[4]), scale, sizes.pooled_height, y, sizes.height);
    const Pixels columns = inclusive_pixels(
        static_cast<Real>(roi[1]), static_cast<Real>(roi[3]), scale, sizes.pooled_width, x, sizes.width);
    const bool empty = rows.end <= rows.begin || columns.end <= columns.begin;
    Real best = empty ? Real(0) : std::numeric_limits<Real>::lowest();
    int64_t place = -1;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        const Real value = static_cast<Real>(plane[row * sizes.width + column]);
        if (value > best) {
          best = value;
          place = row * sizes.width + column;
        }
      }
    }
    out[element] = static_cast<T>(best);
    places[element] = static_cast<int32_t>(place);
  }
};

template <typename T, typename Real>
struct GreatestSpread : ByChannel {
  const T* grad;
  const int32_t* places;

  template <typename Add>
  __device__ void operator()(const Bin& bin, const T* /*roi*/, const RegionSizes& sizes, const Add& add) const {
    const int64_t element = element_of(bin, sizes, sizes.channels);
    const int64_t place = places[element];
    if (place >= 0) {
      CUDA_KERNEL_ASSERT(place < sizes.plane() && "argmax is out of range");
      add(place, static_cast<Real>(grad[element]));
    }
  }
};

} // namespace

std::tuple<at::Tensor, at::Tensor> roi_pool(
    const at::Tensor& input, const at::Tensor& rois, double spatial_scale, int64_t pooled_height,
    int64_t pooled_width) {
  const RegionSizes sizes = check_regions("roi_pool", input, rois, pooled_height, pooled_width);
  TORCH_CHECK(
      sizes.plane() <= std::numeric_limits<int32_t>::max(),
      "roi_pool: indices are int32, but a plane of the input has ", sizes.plane(), " pixels");
  const c10::musa::MUSAGuard guard(input.device());
  at::Tensor out = at::empty({sizes.regions, sizes.channels, pooled_height, pooled_width}, input.options());
  at::Tensor places = at::empty(out.sizes(), input.options().dtype(at::kInt));
  if (out.numel() > 0) {
    const at::Tensor images = input.contiguous(), regions = rois.contiguous();
    MUSA_VISION_DISPATCH(input.scalar_type(), "roi_pool", {
      for_each(
          out.numel(),
          Greatest<scalar_t, op_t>{
              sizes, static_cast<op_t>(spatial_scale), images.const_data_ptr<scalar_t>(),
              regions.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(),
              places.mutable_data_ptr<int32_t>()});
    });
  }
  return {out, places};
}

at::Tensor roi_pool_backward(
    const at::Tensor& grad, const at::Tensor& rois, const at::Tensor& argmax, double /*spatial_scale*/,
    int64_t pooled_height, int64_t pooled_width, int64_t batch_size, int64_t channels, int64_t height, int64_t width) {
  const char* const op = "_roi_pool_backward";
  const RegionSizes sizes =
      check_region_gradient(op, grad, rois, pooled_height, pooled_width, batch_size, channels, height, width);
  TORCH_CHECK(grad.size(1) == channels, op, ": expected a gradient of ", channels, " channels, but got ", grad.sizes());
  check_indices(op, "argmax", argmax, grad);
  const c10::musa::MUSAGuard guard(grad.device());
  const at::Tensor given = grad.contiguous(), places = argmax.contiguous();
  return spread_gradient(given, rois, sizes, [&]<typename T, typename Real>(const T*, const Real*) {
    return GreatestSpread<T, Real>{{}, given.const_data_ptr<T>(), places.const_data_ptr<int32_t>()};
  });
}

} // namespace musa_ops_vision
