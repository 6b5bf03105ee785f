// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Calls torchvision's operators through the dispatcher, for autograd and autocast. Sizes may be symbolic.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SymInt.h>

#include <tuple>

namespace musa_ops_vision::dispatched {

using at::Tensor;
using c10::SymInt;

using Nms = Tensor(const Tensor&, const Tensor&, double);
using RoiAlign = Tensor(const Tensor&, const Tensor&, double, SymInt, SymInt, int64_t, bool);
using RoiAlignBackward =
    Tensor(const Tensor&, const Tensor&, double, SymInt, SymInt, SymInt, SymInt, SymInt, SymInt, int64_t, bool);
using RoiPool = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, double, SymInt, SymInt);
// For roi_pool and ps_roi_pool. The third tensor is the forward operator's second result.
using RoiPoolBackward =
    Tensor(const Tensor&, const Tensor&, const Tensor&, double, SymInt, SymInt, SymInt, SymInt, SymInt, SymInt);
using PsRoiAlign = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, double, SymInt, SymInt, int64_t);
using PsRoiAlignBackward = Tensor(
    const Tensor&, const Tensor&, const Tensor&, double, SymInt, SymInt, int64_t, SymInt, SymInt, SymInt, SymInt);
using DeformConv2d = Tensor(
    const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, SymInt, SymInt, SymInt, SymInt, SymInt,
    SymInt, SymInt, SymInt, bool);
using DeformConv2dBackward = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(
    const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, SymInt, SymInt, SymInt,
    SymInt, SymInt, SymInt, SymInt, SymInt, bool);

// The handle remains valid when torchvision's library replaces the schema that the pack defined, because the pack's
// kernels keep the operator's dispatch entry alive. Example: call<RoiAlign>("torchvision::roi_align", input, rois,
// ...).
template <typename Signature, typename... Args>
auto call(const char* op, Args&&... args) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(op, "").typed<Signature>().call(std::forward<Args>(args)...);
}

} // namespace musa_ops_vision::dispatched
