// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Operands of calls: checks of the caller's arguments, and conversion of tensors to memory that MCCL can use.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "request.h"

namespace c10d::mccl {

// Returns the device. Raises ValueError unless all tensors are dense and on one musa device.
c10::Device check_tensors(const char* call, const std::vector<at::Tensor>& tensors);
// Returns the only tensor of a list. Raises ValueError for other lengths.
const at::Tensor& single(const char* call, const std::vector<at::Tensor>& tensors);
void check_same_dtype(const char* call, const at::Tensor& one, const at::Tensor& other);
void check_root(const char* call, int64_t root, int size);

// Creates a request for these operands, with the settings that all option types of torch share.
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

// Views complex tensors as real ones.
at::Tensor as_real(const at::Tensor& tensor);

// Return the memory of an operand: the tensor's own if it is contiguous. Otherwise a copy, which the request fills
// before the call and copies back after it.
at::Tensor memory_to_read(Request& request, const at::Tensor& tensor);
at::Tensor memory_to_write(Request& request, const at::Tensor& tensor);
at::Tensor memory_to_read_and_write(Request& request, const at::Tensor& tensor);
// Return the concatenation of the tensors, of shape (total elements).
at::Tensor joined_to_read(Request& request, const std::vector<at::Tensor>& tensors);
at::Tensor joined_to_write(Request& request, const std::vector<at::Tensor>& tensors);

} // namespace c10d::mccl
