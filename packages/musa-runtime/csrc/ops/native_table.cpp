// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ops/native_table.h>

namespace musa_runtime {

bool register_native_ops(const NativeOp* table, std::atomic<uint64_t>* calls, size_t count) {
  OpPack pack("native", /*needs_host_addressable=*/true);
  for (size_t i = 0; i < count; ++i) {
    const NativeOp& op = table[i];
    pack.add(op.name, /*conditional=*/false, [op, counter = &calls[i]](Candidate& candidate) {
      candidate.calls = counter;
      return op.make(op.kernel, candidate);
    });
  }
  return true;
}

void check_sync_of_masks(const c10::List<std::optional<at::Tensor>>& indices) {
  if (C10_LIKELY(c10::musa::warning_state().get_sync_debug_mode() == c10::musa::SyncDebugMode::L_DISABLED)) {
    return;
  }
  for (const std::optional<at::Tensor>& index : indices) {
    if (index.has_value() && index->defined() && (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte)) {
      c10::musa::check_sync("indexing with a mask");
      return;
    }
  }
}

bool spans_devices(std::initializer_list<at::TensorList> lists) {
  std::optional<at::Device> first;
  for (const at::TensorList& list : lists) {
    for (const at::Tensor& tensor : list) {
      if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) {
        continue;
      }
      if (!first.has_value()) {
        first = tensor.device();
      } else if (*first != tensor.device()) {
        return true;
      }
    }
  }
  return false;
}

} // namespace musa_runtime
