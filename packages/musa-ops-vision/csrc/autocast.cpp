// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Under autocast the operators compute in float32 and return the dtype of their input, as torchvision's CUDA rules
// do.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "dispatched.h"

namespace musa_ops_vision::autocast {
namespace {

using at::Tensor;
using c10::SymInt;

Tensor widened(const Tensor& tensor) {
  return at::autocast::cached_cast(at::kFloat, tensor, c10::DeviceType::PrivateUse1);
}

const c10::DispatchKeySet kAutocast(c10::DispatchKey::AutocastPrivateUse1);

Tensor nms(const Tensor& dets, const Tensor& scores, double iou_threshold) {
  const c10::impl::ExcludeDispatchKeyGuard without(kAutocast);
  return dispatched::call<dispatched::Nms>("torchvision::nms", widened(dets), widened(scores), iou_threshold);
}
Tensor roi_align(
    const Tensor& input, const Tensor& rois, double scale, SymInt pooled_height, SymInt pooled_width,
    int64_t sampling_ratio, bool aligned) {
  const c10::impl::ExcludeDispatchKeyGuard without(kAutocast);
  return dispatched::call<dispatched::RoiAlign>(
             "torchvision::roi_align", widened(input), widened(rois), scale, pooled_height, pooled_width,
             sampling_ratio, aligned)
      .to(input.scalar_type());
}
std::tuple<Tensor, Tensor> pool(
    const char* op, const Tensor& input, const Tensor& rois, double scale, const SymInt& pooled_height,
    const SymInt& pooled_width) {
  const c10::impl::ExcludeDispatchKeyGuard without(kAutocast);
  auto [out, indices] =
      dispatched::call<dispatched::RoiPool>(op, widened(input), widened(rois), scale, pooled_height, pooled_width);
  return {out.to(input.scalar_type()), indices};
}
std::tuple<Tensor, Tensor> roi_pool(
    const Tensor& input, const Tensor& rois, double scale, SymInt pooled_height, SymInt pooled_width) {
  return pool("torchvision::roi_pool", input, rois, scale, pooled_height, pooled_width);
}
std::tuple<Tensor, Tensor> ps_roi_pool(
    const Tensor& input, const Tensor& rois, double scale, SymInt pooled_height, SymInt pooled_width) {
  return pool("torchvision::ps_roi_pool", input, rois, scale, pooled_height, pooled_width);
}
std::tuple<Tensor, Tensor> ps_roi_align(
    const Tensor& input, const Tensor& rois, double scale, SymInt pooled_height, SymInt pooled_width,
    int64_t sampling_ratio) {
  const c10::impl::ExcludeDispatchKeyGuard without(kAutocast);
  auto [out, mapping] = dispatched::call<dispatched::PsRoiAlign>(
      "torchvision::ps_roi_align", widened(input), widened(rois), scale, pooled_height, pooled_width, sampling_ratio);
  return {out.to(input.scalar_type()), mapping};
}
Tensor deform_conv2d(
    const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask, const Tensor& bias,
    SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups,
    SymInt offset_groups, bool use_mask) {
  const c10::impl::ExcludeDispatchKeyGuard without(kAutocast);
  return dispatched::call<dispatched::DeformConv2d>(
             "torchvision::deform_conv2d", widened(input), widened(weight), widened(offset), widened(mask),
             widened(bias), stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask)
      .to(input.scalar_type());
}

TORCH_LIBRARY_IMPL(torchvision, AutocastPrivateUse1, m) {
  m.impl("nms", TORCH_FN(nms));
  m.impl("roi_align", TORCH_FN(roi_align));
  m.impl("roi_pool", TORCH_FN(roi_pool));
  m.impl("ps_roi_align", TORCH_FN(ps_roi_align));
  m.impl("ps_roi_pool", TORCH_FN(ps_roi_pool));
  m.impl("deform_conv2d", TORCH_FN(deform_conv2d));
}

} // namespace
} // namespace musa_ops_vision::autocast
