// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Gradients of torchvision's operators on musa, computed by its backward operators. Registered for this device's
// autograd key, which takes precedence over torchvision's registrations for all devices, so gradients work with and
// without torchvision.
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "dispatched.h"

namespace musa_ops_vision::autograd {
namespace {

using at::Tensor;
using c10::SymInt;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Arguments of the pooling operators that forward and backward need.
struct Pooling {
  double scale;
  SymInt pooled_height, pooled_width, batches, channels, height, width;

  static Pooling of(const Tensor& input, double scale, const SymInt& pooled_height, const SymInt& pooled_width) {
    TORCH_CHECK(input.dim() == 4, "torchvision: expected an input of shape (N, C, H, W), but got ", input.sym_sizes());
    return {
        scale, pooled_height, pooled_width, input.sym_size(0), input.sym_size(1), input.sym_size(2), input.sym_size(3)};
  }
  static Pooling saved_in(AutogradContext* ctx) {
    const auto number = [ctx](const char* name) { return ctx->saved_data[name].toSymInt(); };
    return {
        ctx->saved_data["scale"].toDouble(),
        number("pooled_height"),
        number("pooled_width"),
        number("batches"),
        number("channels"),
        number("height"),
        number("width")};
  }
  void save(AutogradContext* ctx) const {
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["pooled_height"] = pooled_height;
    ctx->saved_data["pooled_width"] = pooled_width;
    ctx->saved_data["batches"] = batches;
    ctx->saved_data["channels"] = channels;
    ctx->saved_data["height"] = height;
    ctx->saved_data["width"] = width;
  }
};

// Regions have no gradient: the operators are not differentiable with respect to boxes, as in torchvision.
struct RoiAlign : Function<RoiAlign> {
  static Tensor forward(
      AutogradContext* ctx, const Tensor& input, const Tensor& rois, double scale, const SymInt& pooled_height,
      const SymInt& pooled_width, int64_t sampling_ratio, bool aligned) {
    Pooling::of(input, scale, pooled_height, pooled_width).save(ctx);
    ctx->saved_data["sampling_ratio"] = sampling_ratio;
    ctx->saved_data["aligned"] = aligned;
    ctx->save_for_backward({rois});
    const at::AutoDispatchBelowADInplaceOrView below;
    return dispatched::call<dispatched::RoiAlign>(
        "torchvision::roi_align", input, rois, scale, pooled_height, pooled_width, sampling_ratio, aligned);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const Pooling p = Pooling::saved_in(ctx);
    const Tensor grad = dispatched::call<dispatched::RoiAlignBackward>(
        "torchvision::_roi_align_backward", grads[0], ctx->get_saved_variables()[0], p.scale, p.pooled_height,
        p.pooled_width, p.batches, p.channels, p.height, p.width, ctx->saved_data["sampling_ratio"].toInt(),
        ctx->saved_data["aligned"].toBool());
    return {grad, {}, {}, {}, {}, {}, {}};
  }
};

// roi_pool and ps_roi_pool, selected by operator name.
struct Pool : Function<Pool> {
  static variable_list forward(
      AutogradContext* ctx, const Tensor& input, const Tensor& rois, double scale, const SymInt& pooled_height,
      const SymInt& pooled_width, bool by_position) {
    Pooling::of(input, scale, pooled_height, pooled_width).save(ctx);
    ctx->saved_data["by_position"] = by_position;
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, indices] = dispatched::call<dispatched::RoiPool>(
        by_position ? "torchvision::ps_roi_pool" : "torchvision::roi_pool", input, rois, scale, pooled_height,
        pooled_width);
    ctx->save_for_backward({rois, indices});
    ctx->mark_non_differentiable({indices});
    return {out, indices};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const Pooling p = Pooling::saved_in(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const Tensor grad = dispatched::call<dispatched::RoiPoolBackward>(
        ctx->saved_data["by_position"].toBool() ? "torchvision::_ps_roi_pool_backward"
                                                : "torchvision::_roi_pool_backward",
        grads[0], saved[0], saved[1], p.scale, p.pooled_height, p.pooled_width, p.batches, p.channels, p.height,
        p.width);
    return {grad, {}, {}, {}, {}, {}};
  }
};

struct PsRoiAlign : Function<PsRoiAlign> {
  static variable_list forward(
      AutogradContext* ctx, const Tensor& input, const Tensor& rois, double scale, const SymInt& pooled_height,
      const SymInt& pooled_width, int64_t sampling_ratio) {
    Pooling::of(input, scale, pooled_height, pooled_width).save(ctx);
    ctx->saved_data["sampling_ratio"] = sampling_ratio;
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, mapping] = dispatched::call<dispatched::PsRoiAlign>(
        "torchvision::ps_roi_align", input, rois, scale, pooled_height, pooled_width, sampling_ratio);
    ctx->save_for_backward({rois, mapping});
    ctx->mark_non_differentiable({mapping});
    return {out, mapping};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const Pooling p = Pooling::saved_in(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const Tensor grad = dispatched::call<dispatched::PsRoiAlignBackward>(
        "torchvision::_ps_roi_align_backward", grads[0], saved[0], saved[1], p.scale, p.pooled_height, p.pooled_width,
        ctx->saved_data["sampling_ratio"].toInt(), p.batches, p.channels, p.height, p.width);
    return {grad, {}, {}, {}, {}, {}};
  }
};

struct DeformConv2d : Function<DeformConv2d> {
  static Tensor forward(
      AutogradContext* ctx, const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask,
      const Tensor& bias, const SymInt& stride_h, const SymInt& stride_w, const SymInt& pad_h, const SymInt& pad_w,
      const SymInt& dilation_h, const SymInt& dilation_w, const SymInt& groups, const SymInt& offset_groups,
      bool use_mask) {
    ctx->save_for_backward({input, weight, offset, mask, bias});
    ctx->saved_data["stride_h"] = stride_h;
    ctx->saved_data["stride_w"] = stride_w;
    ctx->saved_data["pad_h"] = pad_h;
    ctx->saved_data["pad_w"] = pad_w;
    ctx->saved_data["dilation_h"] = dilation_h;
    ctx->saved_data["dilation_w"] = dilation_w;
    ctx->saved_data["groups"] = groups;
    ctx->saved_data["offset_groups"] = offset_groups;
    ctx->saved_data["use_mask"] = use_mask;
    const at::AutoDispatchBelowADInplaceOrView below;
    return dispatched::call<dispatched::DeformConv2d>(
        "torchvision::deform_conv2d", input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h,
        dilation_w, groups, offset_groups, use_mask);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto number = [ctx](const char* name) { return ctx->saved_data[name].toSymInt(); };
    auto [input, weight, offset, mask, bias] = dispatched::call<dispatched::DeformConv2dBackward>(
        "torchvision::_deform_conv2d_backward", grads[0], saved[0], saved[1], saved[2], saved[3], saved[4],
        number("stride_h"), number("stride_w"), number("pad_h"), number("pad_w"), number("dilation_h"),
        number("dilation_w"), number("groups"), number("offset_groups"), ctx->saved_data["use_mask"].toBool());
    variable_list result{input, weight, offset, mask, bias};
    result.resize(14); // no gradient for non-tensor arguments
    return result;
  }
};

Tensor roi_align(
    const Tensor& input, const Tensor& rois, double scale, SymInt pooled_height, SymInt pooled_width,
    int64_t sampling_ratio, bool aligned) {
  return RoiAlign::apply(input, rois, scale, pooled_height, pooled_width, sampling_ratio, aligned);
}
std::tuple<Tensor, Tensor> roi_pool(
    const Tensor& input, const Tensor& rois, double scale, SymInt pooled_height, SymInt pooled_width) {
  const variable_list result = Pool::apply(input, rois, scale, pooled_height, pooled_width, false);
  return {result[0], result[1]};
}
std::tuple<Tensor, Tensor> ps_roi_pool(
    const Tensor& input, const Tensor& rois, double scale, SymInt pooled_height, SymInt pooled_width) {
  const variable_list result = Pool::apply(input, rois, scale, pooled_height, pooled_width, true);
  return {result[0], result[1]};
}
std::tuple<Tensor, Tensor> ps_roi_align(
    const Tensor& input, const Tensor& rois, double scale, SymInt pooled_height, SymInt pooled_width,
    int64_t sampling_ratio) {
  const variable_list result = PsRoiAlign::apply(input, rois, scale, pooled_height, pooled_width, sampling_ratio);
  return {result[0], result[1]};
}
Tensor deform_conv2d(
    const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask, const Tensor& bias,
    SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups,
    SymInt offset_groups, bool use_mask) {
  return DeformConv2d::apply(
      input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
      offset_groups, use_mask);
}

TORCH_LIBRARY_IMPL(torchvision, AutogradPrivateUse1, m) {
  m.impl("nms", torch::CppFunction::makeFallthrough()); // its result has an integral dtype
  m.impl("roi_align", TORCH_FN(roi_align));
  m.impl("roi_pool", TORCH_FN(roi_pool));
  m.impl("ps_roi_align", TORCH_FN(ps_roi_align));
  m.impl("ps_roi_pool", TORCH_FN(ps_roi_pool));
  m.impl("deform_conv2d", TORCH_FN(deform_conv2d));
  // Second derivatives raise an error that names the operator.
  for (const char* op :
       {"_roi_align_backward", "_roi_pool_backward", "_ps_roi_align_backward", "_ps_roi_pool_backward",
        "_deform_conv2d_backward"}) {
    m.impl(op, torch::autograd::autogradNotImplementedFallback());
  }
}

} // namespace
} // namespace musa_ops_vision::autograd
