// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Mean of bilinear samples in each bin of a region.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSAGuard.h>

#include "checks.h"
#include "dispatch.h"
#include "launch.muh"
#include "operators.h"
#include "regions.muh"

namespace musa_ops_vision {
namespace {

// Channels per thread. The sample positions and weights of a bin are the same in all channels.
constexpr int kChannels = 8;

template <typename T, typename Real>
struct Align {
  RegionSizes sizes;
  Sampling sampling;
  int64_t channel_blocks;
  const T* input;
  const T* rois;
  T* out;

  __device__ void operator()(int64_t i) const {
    const int64_t x = take(i, sizes.pooled_width);
    const int64_t y = take(i, sizes.pooled_height);
    const int64_t first = take(i, channel_blocks) * kChannels;
    const int64_t region = i;
    const T* const roi = rois + region * 5;
    const int64_t plane = sizes.plane();
    const int64_t left = sizes.channels - first;
    const int used = left < kChannels ? static_cast<int>(left) : kChannels;
    const T* const planes = input + (image_of<Real>(roi, sizes.batches) * sizes.channels + first) * plane;
    const SampledRegion<Real> samples(roi, sizes, sampling);
    Real sums[kChannels] = {};
    samples.each(y, x, sizes, [&](const Tap<Real>& row, const Tap<Real>& column) {
      const int64_t top = row.low * sizes.width, bottom = row.high * sizes.width;
      const Real top_left = row.low_weight * column.low_weight, top_right = row.low_weight * column.high_weight;
      const Real bottom_left = row.high_weight * column.low_weight;
      const Real bottom_right = row.high_weight * column.high_weight;
      const T* from = planes;
      for (int c = 0; c < used; ++c, from += plane) {
        sums[c] += top_left * static_cast<Real>(from[top + column.low]) +
            top_right * static_cast<Real>(from[top + column.high]) +
            bottom_left * static_cast<Real>(from[bottom + column.low]) +
            bottom_right * static_cast<Real>(from[bottom + column.high]);
      }
    });
    const int64_t count = samples.count();
    const Real divisor = static_cast<Real>(count > 1 ? count : 1);
    T* to = out + ((region * sizes.channels + first) * sizes.pooled_height + y) * sizes.pooled_width + x;
    for (int c = 0; c < used; ++c, to += sizes.bins()) {
      *to = static_cast<T>(sums[c] / divisor);
    }
  }
};

template <typename T, typename Real>
struct AlignSpread : ByChannel {
  Sampling sampling;
  const T* grad;

  template <typename Add>
  __device__ void operator()(const Bin& bin, const T* roi, const RegionSizes& sizes, const Add& add) const {
    const SampledRegion<Real> samples(roi, sizes, sampling);
    const int64_t count = samples.count();
    const Real share =
        static_cast<Real>(grad[element_of(bin, sizes, sizes.channels)]) / static_cast<Real>(count > 1 ? count : 1);
    samples.each(bin.y, bin.x, sizes, [&](const Tap<Real>& row, const Tap<Real>& column) {
      const int64_t top = row.low * sizes.width, bottom = row.high * sizes.width;
      add(top + column.low, share * row.low_weight * column.low_weight);
      add(top + column.high, share * row.low_weight * column.high_weight);
      add(bottom + column.low, share * row.high_weight * column.low_weight);
      add(bottom + column.high, share * row.high_weight * column.high_weight);
    });
  }
};

Sampling sampling_of(double scale, int64_t ratio, bool aligned) {
  return {scale, aligned ? 0.5 : 0.0, !aligned, ratio};
}

} // namespace

at::Tensor roi_align(
    const at::Tensor& input, const at::Tensor& rois, double spatial_scale, int64_t pooled_height, int64_t pooled_width,
    int64_t sampling_ratio, bool aligned) {
  const RegionSizes sizes = check_regions("roi_align", input, rois, pooled_height, pooled_width);
  const c10::musa::MUSAGuard guard(input.device());
  at::Tensor out = at::empty({sizes.regions, sizes.channels, pooled_height, pooled_width}, input.options());
  if (out.numel() == 0) {
    return out;
  }
  const at::Tensor images = input.contiguous(), regions = rois.contiguous();
  const int64_t channel_blocks = (sizes.channels + kChannels - 1) / kChannels;
  MUSA_VISION_DISPATCH(input.scalar_type(), "roi_align", {
    for_each(
        sizes.regions * channel_blocks * sizes.bins(),
        Align<scalar_t, op_t>{
            sizes, sampling_of(spatial_scale, sampling_ratio, aligned), channel_blocks,
            images.const_data_ptr<scalar_t>(), regions.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>()});
  });
  return out;
}

at::Tensor roi_align_backward(
    const at::Tensor& grad, const at::Tensor& rois, double spatial_scale, int64_t pooled_height, int64_t pooled_width,
    int64_t batch_size, int64_t channels, int64_t height, int64_t width, int64_t sampling_ratio, bool aligned) {
  const RegionSizes sizes = check_region_gradient(
      "_roi_align_backward", grad, rois, pooled_height, pooled_width, batch_size, channels, height, width);
  TORCH_CHECK(
      grad.size(1) == channels, "_roi_align_backward: expected a gradient of ", channels, " channels, but got ",
      grad.sizes());
  const c10::musa::MUSAGuard guard(grad.device());
  const at::Tensor given = grad.contiguous();
  const Sampling sampling = sampling_of(spatial_scale, sampling_ratio, aligned);
  return spread_gradient(given, rois, sizes, [&]<typename T, typename Real>(const T*, const Real*) {
    return AlignSpread<T, Real>{{}, sampling, given.const_data_ptr<T>()};
  });
}

} // namespace musa_ops_vision
