// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Operands of calls: what callers may do wrong, and how tensors become memory that MCCL can take.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "request.h"

namespace c10d::mccl {

// Raises ValueError unless all are dense tensors on one device of musa; gives the device.
c10::Device check_tensors(const char* call, const std::vector<at::Tensor>& tensors);
// The only one of a list that may have no other length.
const at::Tensor& single(const char* call, const std::vector<at::Tensor>& tensors);
void check_same_dtype(const char* call, const at::Tensor& one, const at::Tensor& other);
void check_root(const char* call, int64_t root, int size);

// A request for these operands, with what all options of torch have in common.
template <class Options>
Request request_for(
    OpType type, Title title, const Options& options, std::vector<at::Tensor> inputs, std::vector<at::Tensor> outputs) {
  Request request{type, title};
  std::vector<at::Tensor> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  request.device = check_tensors(title.name(), all);
  request.inputs = std::move(inputs);
  request.outputs = std::move(outputs);
  request.timeout = options.timeout;
  request.async = options.asyncOp;
  return request;
}

int64_t numel_of(const std::vector<at::Tensor>& tensors);

// Complex numbers as pairs of real ones.
at::Tensor as_real(const at::Tensor& tensor);

// Memory of an operand: the tensor's own where it is contiguous, and otherwise a copy that the request makes before the call,
// and copies back after it.
at::Tensor memory_to_read(Request& request, const at::Tensor& tensor);
at::Tensor memory_to_write(Request& request, const at::Tensor& tensor);
at::Tensor memory_to_read_and_write(Request& request, const at::Tensor& tensor);
// The tensors one behind the other, as (total elements).
at::Tensor joined_to_read(Request& request, const std::vector<at::Tensor>& tensors);
at::Tensor joined_to_write(Request& request, const std::vector<at::Tensor>& tensors);

} // namespace c10d::mccl
