// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Mean of the pixels in each bin of a region, from the bin's own input channel.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSAGuard.h>

#include <cmath>

#include "checks.h"
#include "dispatch.h"
#include "launch.muh"
#include "operators.h"
#include "regions.muh"

namespace musa_ops_vision {
namespace {

// The pixels of a bin. The borders of the region are rounded to pixels; the last one is excluded. The last row and
// column of an image belong to no bin, as in torchvision's kernels.
template <typename Real>
__device__ Pixels pixels_of(Real from, Real to, Real scale, int64_t bins, int64_t bin, int64_t size) {
  const int64_t first = static_cast<int64_t>(std::round(from * scale));
  const int64_t last = static_cast<int64_t>(std::round(to * scale));
  const int64_t extent = last - first > 1 ? last - first : 1;
  const Real step = static_cast<Real>(extent) / static_cast<Real>(bins);
  const int64_t begin = static_cast<int64_t>(std::floor(static_cast<Real>(bin) * step)) + first;
  const int64_t end = static_cast<int64_t>(std::ceil(static_cast<Real>(bin + 1) * step)) + first;
  const int64_t most = size - 1;
  return {begin < 0 ? 0 : begin > most ? most : begin, end < 0 ? 0 : end > most ? most : end};
}

template <typename Real>
struct PixelsOfBin {
  Pixels rows, columns;

  template <typename T>
  __device__ PixelsOfBin(const T* roi, Real scale, const RegionSizes& sizes, int64_t y, int64_t x)
      : rows(pixels_of(
            static_cast<Real>(roi[2]), static_cast<Real>(roi[4]), scale, sizes.pooled_height, y, sizes.height)),
        columns(pixels_of(
            static_cast<Real>(roi[1]), static_cast<Real>(roi[3]), scale, sizes.pooled_width, x, sizes.width)) {}

  __device__ int64_t count() const {
    const bool empty = rows.end <= rows.begin || columns.end <= columns.begin;
    return empty ? 0 : (rows.end - rows.begin) * (columns.end - columns.begin);
  }
  // Calls use(pixel index in the plane) for the pixels of the bin.
  template <typename Use>
  __device__ void each(int64_t width, const Use& use) const {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        use(row * width + column);
      }
    }
  }
};

template <typename T, typename Real>
struct MeanByPosition {
  RegionSizes sizes;
  Real scale;
  int64_t channels; // of the output
  const T* input;
  const T* rois;
  T* out;
  int32_t* mapping;

  __device__ void operator()(int64_t i) const {
    const int64_t element = i;
    Bin bin{};
    bin.x = take(i, sizes.pooled_width);
    bin.y = take(i, sizes.pooled_height);
    bin.channel = take(i, channels);
    bin.region = i;
    const T* const roi = rois + bin.region * 5;
    const int64_t channel = ByPosition::input_channel(bin, sizes);
    const T* const plane = input + (image_of<Real>(roi, sizes.batches) * sizes.channels + channel) * sizes.plane();
    const PixelsOfBin<Real> pixels(roi, scale, sizes, bin.y, bin.x);
    const int64_t count = pixels.count();
    Real sum = 0;
    if (count > 0) {
      pixels.each(sizes.width, [&](int64_t pixel) { sum += static_cast<Real>(plane[pixel]); });
      sum /= static_cast<Real>(count);
    }
    out[element] = static_cast<T>(sum);
    mapping[element] = static_cast<int32_t>(channel);
  }
};

template <typename T, typename Real>
struct MeanByPositionSpread : ByPosition {
  Real scale;
  int64_t channels; // of the gradient
  const T* grad;

  template <typename Add>
  __device__ void operator()(const Bin& bin, const T* roi, const RegionSizes& sizes, const Add& add) const {
    const PixelsOfBin<Real> pixels(roi, scale, sizes, bin.y, bin.x);
    const int64_t count = pixels.count();
    if (count > 0) {
      const Real share = static_cast<Real>(grad[element_of(bin, sizes, channels)]) / static_cast<Real>(count);
      pixels.each(sizes.width, [&](int64_t pixel) { add(pixel, share); });
    }
  }
};

} // namespace

std::tuple<at::Tensor, at::Tensor> ps_roi_pool(
    const at::Tensor& input, const at::Tensor& rois, double spatial_scale, int64_t pooled_height,
    int64_t pooled_width) {
  const RegionSizes sizes = check_regions("ps_roi_pool", input, rois, pooled_height, pooled_width);
  const int64_t channels = check_position_sensitive("ps_roi_pool", sizes);
  const c10::musa::MUSAGuard guard(input.device());
  at::Tensor out = at::empty({sizes.regions, channels, pooled_height, pooled_width}, input.options());
  at::Tensor mapping = at::empty(out.sizes(), input.options().dtype(at::kInt));
  if (out.numel() > 0) {
    const at::Tensor images = input.contiguous(), regions = rois.contiguous();
    MUSA_VISION_DISPATCH(input.scalar_type(), "ps_roi_pool", {
      for_each(
          out.numel(),
          MeanByPosition<scalar_t, op_t>{
              sizes, static_cast<op_t>(spatial_scale), channels, images.const_data_ptr<scalar_t>(),
              regions.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(),
              mapping.mutable_data_ptr<int32_t>()});
    });
  }
  return {out, mapping};
}

at::Tensor ps_roi_pool_backward(
    const at::Tensor& grad, const at::Tensor& rois, const at::Tensor& channel_mapping, double spatial_scale,
    int64_t pooled_height, int64_t pooled_width, int64_t batch_size, int64_t channels, int64_t height, int64_t width) {
  const char* const op = "_ps_roi_pool_backward";
  const RegionSizes sizes =
      check_region_gradient(op, grad, rois, pooled_height, pooled_width, batch_size, channels, height, width);
  TORCH_CHECK(
      grad.size(1) == check_position_sensitive(op, sizes), op, ": expected a gradient of ", channels / sizes.bins(),
      " channels, but got ", grad.sizes());
  check_indices(op, "channel_mapping", channel_mapping, grad);
  const c10::musa::MUSAGuard guard(grad.device());
  const at::Tensor given = grad.contiguous();
  return spread_gradient(given, rois, sizes, [&]<typename T, typename Real>(const T*, const Real*) {
    return MeanByPositionSpread<T, Real>{
        {}, static_cast<Real>(spatial_scale), given.size(1), given.const_data_ptr<T>()};
  });
}

} // namespace musa_ops_vision
