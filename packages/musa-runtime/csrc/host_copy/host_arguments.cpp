// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/host/host_arguments.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace musa_runtime {
namespace {

struct Row {
  std::string_view op;
  std::string_view arguments; // separated by spaces
  HostTensor rule;
};

constexpr Row kRows[] = {
#include <musa_runtime/host/host_arguments.inc>
};

using Rules = std::unordered_map<std::string, HostTensor>; // by "operator argument"

const Rules& rules() {
  static const Rules& instance = *[] {
    auto* made = new Rules();
    for (const Row& row : kRows) {
      for (size_t start = 0; start < row.arguments.size();) {
        const size_t end = std::min(row.arguments.find(' ', start), row.arguments.size());
        std::string key(row.op);
        key.append(" ").append(row.arguments.substr(start, end - start));
        made->emplace(std::move(key), row.rule);
        start = end + 1;
      }
    }
    return made;
  }();
  return instance;
}

} // namespace

HostTensor host_tensor_rule(std::string_view op, std::string_view argument) {
  constexpr std::string_view aten = "aten::";
  if (op.substr(0, aten.size()) != aten) {
    return HostTensor::Refused;
  }
  op.remove_prefix(aten.size());
  // An in-place form uses the row of its functional form; `__ilshift__` and similar ones have rows of their own.
  if (op.ends_with("_") && !op.ends_with("__")) {
    op.remove_suffix(1);
  }
  const auto found = rules().find(std::string(op).append(" ").append(argument));
  return found == rules().end() ? HostTensor::Refused : found->second;
}

bool returns_host_tensors(std::string_view op) {
  static constexpr std::array<std::string_view, 3> names{
      "aten::_nested_tensor_size", "aten::_nested_tensor_strides", "aten::_nested_tensor_storage_offsets"};
  return std::find(names.begin(), names.end(), op) != names.end();
}

void HostTensorCheck::admit(const at::Tensor& tensor, HostTensor rule, at::Device device) {
  if (tensor.is_cpu()) {
    const bool is_value = tensor.dim() == 0 && tensor.layout() == at::kStrided && !tensor.is_nested();
    if (rule == HostTensor::Any || (rule == HostTensor::Value && is_value)) {
      return;
    }
    if (rule == HostTensor::Number && is_value) {
      TORCH_CHECK(!has_number_, "Trying to pass too many CPU scalars to non-CPU kernel!");
      has_number_ = true;
      return;
    }
    TORCH_CHECK(
        rule != HostTensor::Indexed, "indices should be either on cpu or on the same device as the indexed tensor (",
        tensor.device(), ")");
  }
  TORCH_CHECK(
      false, "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
      tensor.device(), "!\nFix: move the tensor with .to('", device, "').");
}

} // namespace musa_runtime
