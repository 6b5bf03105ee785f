// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Mean of bilinear samples in each bin of a region, from the bin's own input channel.
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

template <typename T, typename Real>
struct AlignByPosition {
  RegionSizes sizes;
  Sampling sampling;
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
    const SampledRegion<Real> samples(roi, sizes, sampling);
    Real sum = 0;
    samples.each(bin.y, bin.x, sizes, [&](const Tap<Real>& row, const Tap<Real>& column) {
      const int64_t top = row.low * sizes.width, bottom = row.high * sizes.width;
      sum += row.low_weight * column.low_weight * static_cast<Real>(plane[top + column.low]) +
          row.low_weight * column.high_weight * static_cast<Real>(plane[top + column.high]) +
          row.high_weight * column.low_weight * static_cast<Real>(plane[bottom + column.low]) +
          row.high_weight * column.high_weight * static_cast<Real>(plane[bottom + column.high]);
    });
    out[element] = static_cast<T>(sum / static_cast<Real>(samples.count()));
    mapping[element] = static_cast<int32_t>(channel);
  }
};

template <typename T, typename Real>
struct AlignByPositionSpread : ByPosition {
  Sampling sampling;
  int64_t channels; // of the gradient
  const T* grad;

  template <typename Add>
  __device__ void operator()(const Bin& bin, const T* roi, const RegionSizes& sizes, const Add& add) const {
    const SampledRegion<Real> samples(roi, sizes, sampling);
    const Real share = static_cast<Real>(grad[element_of(bin, sizes, channels)]) / static_cast<Real>(samples.count());
    samples.each(bin.y, bin.x, sizes, [&](const Tap<Real>& row, const Tap<Real>& column) {
      const int64_t top = row.low * sizes.width, bottom = row.high * sizes.width;
      add(top + column.low, share * row.low_weight * column.low_weight);
      add(top + column.high, share * row.low_weight * column.high_weight);
      add(bottom + column.low, share * row.high_weight * column.low_weight);
      add(bottom + column.high, share * row.high_weight * column.high_weight);
    });
  }
};

Sampling sampling_of(double scale, int64_t ratio) { return {scale, 0.5, false, ratio}; }

} // namespace

std::tuple<at::Tensor, at::Tensor> ps_roi_align(
    const at::Tensor& input, const at::Tensor& rois, double spatial_scale, int64_t pooled_height, int64_t pooled_width,
    int64_t sampling_ratio) {
  const RegionSizes sizes = check_regions("ps_roi_align", input, rois, pooled_height, pooled_width);
  const int64_t channels = check_position_sensitive("ps_roi_align", sizes);
  const c10::musa::MUSAGuard guard(input.device());
  at::Tensor out = at::empty({sizes.regions, channels, pooled_height, pooled_width}, input.options());
  at::Tensor mapping = at::empty(out.sizes(), input.options().dtype(at::kInt));
  if (out.numel() > 0) {
    const at::Tensor images = input.contiguous(), regions = rois.contiguous();
    MUSA_VISION_DISPATCH(input.scalar_type(), "ps_roi_align", {
      for_each(
          out.numel(),
          AlignByPosition<scalar_t, op_t>{
              sizes, sampling_of(spatial_scale, sampling_ratio), channels, images.const_data_ptr<scalar_t>(),
              regions.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(),
              mapping.mutable_data_ptr<int32_t>()});
    });
  }
  return {out, mapping};
}

at::Tensor ps_roi_align_backward(
    const at::Tensor& grad, const at::Tensor& rois, const at::Tensor& channel_mapping, double spatial_scale,
    int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio, int64_t batch_size, int64_t channels,
    int64_t height, int64_t width) {
  const char* const op = "_ps_roi_align_backward";
  const RegionSizes sizes =
      check_region_gradient(op, grad, rois, pooled_height, pooled_width, batch_size, channels, height, width);
  TORCH_CHECK(
      grad.size(1) == check_position_sensitive(op, sizes), op, ": expected a gradient of ", channels / sizes.bins(),
      " channels, but got ", grad.sizes());
  check_indices(op, "channel_mapping", channel_mapping, grad);
  const c10::musa::MUSAGuard guard(grad.device());
  const at::Tensor given = grad.contiguous();
  const Sampling sampling = sampling_of(spatial_scale, sampling_ratio);
  return spread_gradient(given, rois, sizes, [&]<typename T, typename Real>(const T*, const Real*) {
    return AlignByPositionSpread<T, Real>{{}, sampling, given.size(1), given.const_data_ptr<T>()};
  });
}

} // namespace musa_ops_vision
