// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>

#include "checks.h"
#include "operators.h"

namespace musa_ops_serving {
namespace {

constexpr int64_t kMostExperts = 2048; // whose numbers fit into the shared memory of a block on every device

}

std::tuple<at::Tensor, at::Tensor> moe_route(
    const at::Tensor& scores, int64_t k, std::string_view scoring, bool renormalize, int64_t groups, int64_t top_groups,
    const std::optional<at::Tensor>& bias, double scale) {
  const char* const op = "moe_route";
  const Dtype dtype = check_floating(op, {"scores", scores});
  check_dims(op, {"scores", scores}, 2, "[tokens, experts]");
  const int64_t tokens = scores.size(0), count = scores.size(1);
  TORCH_CHECK(
      scoring == "softmax" || scoring == "sigmoid", op, ": expected scoring of \"softmax\" or \"sigmoid\", got \"",
      scoring, "\"");
  TORCH_CHECK(
      count > 0 && count <= kMostExperts, op, ": expected 1 to ", kMostExperts, " experts, got scores of shape ",
      scores.sizes());
  TORCH_CHECK(
      groups > 0 && count % groups == 0 && top_groups > 0 && top_groups <= groups, op,
      ": expected groups that divide the ", count, " experts and top_groups between 1 and groups, got groups ", groups,
      " and top_groups ", top_groups);
  TORCH_CHECK(
      k > 0 && k <= top_groups * (count / groups), op, ": expected k between 1 and the ", top_groups * (count / groups),
      " experts of top_groups groups, got ", k);
  Routing routing{};
  routing.bias = check_floats(op, "bias", bias, count, scores.device(), "expert");
  at::Tensor weights = at::empty({tokens, k}, scores.options().dtype(at::kFloat));
  at::Tensor experts = at::empty({tokens, k}, scores.options().dtype(at::kInt));
  if (tokens == 0) {
    return {weights, experts};
  }
  check_int32(op, "the number of tokens", tokens);
  const c10::musa::MUSAGuard guard(scores.device());
  const at::Tensor rows = readable(scores, false);
  routing.scores = rows.const_data_ptr();
  routing.weights = weights.mutable_data_ptr<float>();
  routing.experts = experts.mutable_data_ptr<int32_t>();
  routing.tokens = tokens;
  routing.row_stride = rows.stride(0);
  routing.count = static_cast<int>(count);
  routing.k = static_cast<int>(k);
  routing.groups = static_cast<int>(groups);
  routing.top_groups = static_cast<int>(top_groups);
  routing.scale = static_cast<float>(scale);
  routing.softmax = scoring == "softmax";
  routing.renormalize = renormalize;
  route(routing, dtype, c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return {weights, experts};
}

std::tuple<at::Tensor, at::Tensor> moe_group(const at::Tensor& experts, int64_t expert_count) {
  const char* const op = "moe_group";
  const int64_t rows = experts.numel();
  Grouping grouping{};
  grouping.experts = check_integers(op, {"experts", experts}, rows, experts.device());
  TORCH_CHECK(
      expert_count > 0 && expert_count <= kMostExperts, op, ": expected an expert_count of 1 to ", kMostExperts,
      ", got ", expert_count);
  check_int32(op, "the number of rows", rows);
  const c10::musa::MUSAGuard guard(experts.device());
  const auto integers = experts.options().dtype(at::kInt);
  at::Tensor order = at::empty({rows}, experts.options().dtype(at::kLong));
  at::Tensor offsets = at::empty({expert_count}, integers);
  const int64_t blocks = (rows + kGroupedRows - 1) / kGroupedRows;
  const at::Tensor room = at::empty({blocks + 1, expert_count + 1}, integers);
  grouping.rows = rows;
  grouping.count = static_cast<int>(expert_count);
  grouping.starts = room.mutable_data_ptr<int32_t>();
  grouping.counts = grouping.starts + expert_count + 1;
  grouping.order = order.mutable_data_ptr<int64_t>();
  grouping.offsets = offsets.mutable_data_ptr<int32_t>();
  group_rows(grouping, c10::musa::getCurrentMUSAStream().stream());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return {order, offsets};
}

} // namespace musa_ops_serving
