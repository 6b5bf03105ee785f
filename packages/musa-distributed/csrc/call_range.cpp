// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "call_range.h"

#include <c10/musa/MUSACompat.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <tuple>

#include "tensors.h"

namespace c10d::mccl {
namespace {

// Trace tools use other names than the flight recorder for these calls.
const char* name_in_traces(OpType type, const char* otherwise) {
  switch (type) {
    case OpType::ALLREDUCE: return "allreduce";
    case OpType::_ALLGATHER_BASE: return "_allgather_base";
    default: return otherwise;
  }
}

// Returns the distance between consecutive ranks, or -1 if it varies.
int stride_of(const std::vector<uint64_t>& ranks) {
  if (ranks.size() < 2) {
    return 1;
  }
  const auto stride = static_cast<int64_t>(ranks[1]) - static_cast<int64_t>(ranks[0]);
  for (size_t i = 2; i < ranks.size(); ++i) {
    if (static_cast<int64_t>(ranks[i]) - static_cast<int64_t>(ranks[i - 1]) != stride) {
      return -1;
    }
  }
  return static_cast<int>(stride);
}

} // namespace

CallRange::CallRange(
    const Group& group, const Launched& launched, const Request& first, const std::vector<at::Tensor>& inputs,
    const std::vector<at::Tensor>& outputs) {
  if (range_.isActive()) {
    begin(group, launched, first, inputs, outputs);
  }
}

void CallRange::begin(
    const Group& group, const Launched& launched, const Request& first, const std::vector<at::Tensor>& inputs,
    const std::vector<at::Tensor>& outputs) {
  const auto seen = group.name();
  const auto name = std::make_tuple(seen->name, seen->description);
  const auto sequence = std::make_tuple(static_cast<int64_t>(launched.seq()), launched.p2p);
  const std::vector<uint64_t> ranks = group.global_ranks();
  const int start = static_cast<int>(ranks.front()), stride = stride_of(ranks);
  const int rank = first.peer >= 0 ? first.peer : group.rank(); // for a transfer, the rank of the peer
  const std::string call =
      name_in_traces(launched.type, launched.type == OpType::COALESCED ? "coalesced" : first.title.name());
  const at::ScalarType dtype = !inputs.empty() ? inputs.front().scalar_type()
      : !outputs.empty()                       ? outputs.front().scalar_type()
                                               : at::kByte;
  const std::vector<int64_t> splits; // empty: the parts are equal

  auto parameters = std::make_shared<torch::ParamCommsDebugInfo>(
      name, rank, std::string(call), numel_of(inputs), numel_of(outputs), dtype, splits, splits, start, stride,
      group.size() MUSA_SINCE_TORCH_2_12(, first.async));
  MUSA_SINCE_TORCH_2_12(torch::maybeSetSequenceInfo(parameters, sequence);)
  parameters_ = std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PARAM_COMMS_INFO, parameters);
  if (range_.needsInputs()) {
    const std::vector<c10::IValue> values{
        c10::IValue(inputs), sequence, name,   rank,         call,       c10::IValue(splits),
        c10::IValue(splits), start,    stride, group.size(), first.async};
    range_.before(at::kParamCommsCallName, c10::ArrayRef<const c10::IValue>(values.data(), values.size()));
  } else {
    range_.before(at::kParamCommsCallName);
  }
  if (range_.needsOutputs()) {
    range_.setOutputs(std::vector<c10::IValue>(1, c10::IValue(outputs)));
  }
}

} // namespace c10d::mccl
