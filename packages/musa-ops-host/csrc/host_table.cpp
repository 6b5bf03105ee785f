// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "host_table.h"

#include <musa_runtime/host/fallback.h>

#include <algorithm>
#include <string_view>

namespace musa_ops_host {
namespace {

// torch's CPU kernels of these operators write to self before they refuse a dtype, so a refused call is not passed on.
// tests/conformance/test_declined_calls.py checks the list.
constexpr std::string_view kWriteFirst[] = {"aten::addbmm_", "aten::index_reduce_", "aten::scatter_reduce_.two"};

} // namespace

void declare(musa_runtime::OpPack& pack, const HostOp* table, std::atomic<uint64_t>* calls, size_t count) {
  pack.needs_host_addressable();
  for (size_t i = 0; i < count; ++i) {
    const HostOp& op = table[i];
    const bool writes_first =
        std::find(std::begin(kWriteFirst), std::end(kWriteFirst), std::string_view(op.name)) != std::end(kWriteFirst);
    pack.generated({op.name, op.type, op.kernel, op.served, &calls[i], /*conditional=*/!writes_first});
  }
}

void check_sync_of_masks(const c10::List<std::optional<at::Tensor>>& indices) {
  if (C10_LIKELY(c10::musa::warning_state().get_sync_debug_mode() == c10::musa::SyncDebugMode::L_DISABLED)) {
    return;
  }
  for (const std::optional<at::Tensor>& index : indices) {
    if (index.has_value() && index->defined() &&
        (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte)) {
      c10::musa::check_sync("indexing with a mask");
      return;
    }
  }
}

bool is_mixed(std::initializer_list<at::TensorList> lists, std::initializer_list<at::Tensor> tensors) {
  std::optional<at::Device> first;
  const auto on_another = [&first](const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return false;
    }
    if (!first.has_value()) {
      first = tensor.device();
    }
    return *first != tensor.device();
  };
  return std::any_of(
             lists.begin(), lists.end(),
             [&](const at::TensorList& list) {
               return std::any_of(list.begin(), list.end(), [&](const at::Tensor& tensor) {
                 return on_another(tensor) || (tensor.defined() && tensor.scalar_type() != list[0].scalar_type());
               });
             }) ||
      std::any_of(tensors.begin(), tensors.end(), on_another);
}

void pass_on(const detail::ChainLink& link, bool recorded, const c10::NotImplementedError& error) {
  if (!link.next.isValid()) {
    musa_runtime::throw_unserved(error, c10::toString(link.op.operator_name()), "host");
  }
  if (!recorded) {
    link.calls->fetch_sub(1, std::memory_order_relaxed);
  } else if (musa_runtime::capture_failed()) {
    throw;
  }
}

} // namespace musa_ops_host
