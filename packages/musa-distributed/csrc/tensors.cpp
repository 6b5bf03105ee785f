// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

namespace c10d::mccl {
namespace {

void then(std::function<void()>& slot, std::function<void()> more) {
  slot = slot ? [first = std::move(slot), more = std::move(more)] { first(); more(); } : std::move(more);
}

at::Tensor contiguous_scratch(Request& request, const at::Tensor& like) {
  request.scratch.push_back(at::empty(like.sizes(), like.options()));
  return request.scratch.back();
}

bool lie_together(const std::vector<at::Tensor>& tensors) {
  const char* next = static_cast<const char*>(tensors.front().const_data_ptr());
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_contiguous() || !tensor.storage().is_alias_of(tensors.front().storage()) ||
        tensor.const_data_ptr() != next) {
      return false;
    }
    next += tensor.nbytes();
  }
  return true;
}

at::Tensor joined_view(const std::vector<at::Tensor>& tensors) {
  return tensors.front().as_strided({numel_of(tensors)}, {1}, tensors.front().storage_offset());
}

at::Tensor joined_scratch(Request& request, const std::vector<at::Tensor>& tensors) {
  request.scratch.push_back(at::empty({numel_of(tensors)}, tensors.front().options()));
  return request.scratch.back();
}

// Calls f(tensor, its part of `whole`) for each tensor.
template <class F>
void for_parts(const at::Tensor& whole, const std::vector<at::Tensor>& tensors, F f) {
  int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    f(tensor, whole.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

// Registered for torch.distributed's operators on sparse tensors, which torch does not pass to a process group.
// all_reduce is not included, because torch has a sparse kernel for it.
void refuse_sparse(const c10::OperatorHandle& op, torch::jit::Stack* /*stack*/) {
  TORCH_CHECK_VALUE(
      false, "mccl supports dense tensors only, but ", op.schema().name(),
      " was called with a sparse one.\nFix: tensor.to_dense(); for gradients of an embedding: "
      "torch.nn.Embedding(..., sparse=False).");
}

TORCH_LIBRARY_IMPL(c10d, SparsePrivateUse1, library) {
  for (const char* name :
       {"allreduce_coalesced_", "broadcast_", "reduce_", "allgather_", "_allgather_base_", "reduce_scatter_",
        "_reduce_scatter_base_", "gather_", "scatter_", "alltoall_", "alltoall_base_", "send", "recv_"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
  }
}

} // namespace

c10::Device check_tensors(const char* call, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(!tensors.empty(), "mccl:", call, " needs tensors.");
  const c10::Device device = tensors.front().device();
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK_VALUE(
        tensor.device().is_privateuseone(), "mccl:", call, " takes tensors on musa, but one is on ", tensor.device(),
        ".\nFix: tensor.to(\"musa\"), or init_process_group(\"cpu:gloo,musa:mccl\") for both devices.");
    TORCH_CHECK_VALUE(
        tensor.device() == device, "mccl:", call, " takes tensors on one device, but they are on ", device, " and ",
        tensor.device(), ".");
  }
  return device;
}

const at::Tensor& single(const char* call, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "mccl:", call, " takes one tensor per process, not ", tensors.size(), ".");
  return tensors.front();
}

void check_same_dtype(const char* call, const at::Tensor& one, const at::Tensor& other) {
  TORCH_CHECK_TYPE(
      one.scalar_type() == other.scalar_type(), "mccl:", call, " takes tensors of one dtype, but they have ",
      one.scalar_type(), " and ", other.scalar_type(), ".");
}

void check_root(const char* call, int64_t root, int size) {
  TORCH_CHECK_VALUE(root >= 0 && root < size, "mccl:", call, ": there is no rank ", root, " in a group of ", size, ".");
}

int64_t numel_of(const std::vector<at::Tensor>& tensors) {
  int64_t total = 0;
  for (const at::Tensor& tensor : tensors) {
    total += tensor.numel();
  }
  return total;
}

at::Tensor as_real(const at::Tensor& tensor) { return tensor.is_complex() ? at::view_as_real(tensor) : tensor; }

at::Tensor memory_to_read(Request& request, const at::Tensor& tensor) {
  if (tensor.is_contiguous()) {
    return tensor;
  }
  at::Tensor copy = contiguous_scratch(request, tensor);
  then(request.before, [copy, tensor] { copy.copy_(tensor); });
  return copy;
}

at::Tensor memory_to_write(Request& request, const at::Tensor& tensor) {
  if (tensor.is_contiguous()) {
    return tensor;
  }
  at::Tensor copy = contiguous_scratch(request, tensor);
  then(request.after, [copy, tensor] { tensor.copy_(copy); });
  return copy;
}

at::Tensor memory_to_read_and_write(Request& request, const at::Tensor& tensor) {
  if (tensor.is_contiguous()) {
    return tensor;
  }
  at::Tensor copy = memory_to_read(request, tensor);
  then(request.after, [copy, tensor] { tensor.copy_(copy); });
  return copy;
}

at::Tensor joined_to_read(Request& request, const std::vector<at::Tensor>& tensors) {
  if (lie_together(tensors)) {
    return joined_view(tensors);
  }
  at::Tensor whole = joined_scratch(request, tensors);
  then(request.before, [whole, tensors] {
    for_parts(whole, tensors, [](const at::Tensor& tensor, const at::Tensor& part) { part.copy_(tensor); });
  });
  return whole;
}

at::Tensor joined_to_write(Request& request, const std::vector<at::Tensor>& tensors) {
  if (lie_together(tensors)) {
    return joined_view(tensors);
  }
  at::Tensor whole = joined_scratch(request, tensors);
  then(request.after, [whole, tensors] {
    for_parts(whole, tensors, [](const at::Tensor& tensor, const at::Tensor& part) { tensor.copy_(part); });
  });
  return whole;
}

} // namespace c10d::mccl
