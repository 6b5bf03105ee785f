// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <transfer/spans.h>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <c10/musa/MUSASyncDebugMode.h>
#include <transfer/memcpy.h>

namespace at::musa {
namespace {

size_t span_bytes(const Tensor& tensor) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
}

} // namespace

Tensor read_span(const Tensor& tensor) {
  const auto options = tensor.options().device(kCPU).pinned_memory(std::nullopt);
  if (tensor._is_zerotensor()) {
    return at::zeros(tensor.sizes(), options); // has no memory to read
  }
  Tensor host = at::empty_strided(tensor.sizes(), tensor.strides(), options);
  if (tensor.numel() != 0) {
    memcpy_on_stream(
        host.mutable_data_ptr(), tensor.const_data_ptr(), span_bytes(tensor), musaMemcpyDeviceToHost, tensor.device(),
        Then::Wait);
  }
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  return host;
}

void write_span(const Tensor& tensor, const Tensor& host) {
  if (tensor.numel() != 0) {
    memcpy_on_stream(
        tensor.mutable_data_ptr(), host.const_data_ptr(), span_bytes(tensor), musaMemcpyHostToDevice, tensor.device(),
        Then::Wait);
  }
}

Tensor to_cpu(const Tensor& source) {
  c10::musa::check_sync("an operator that is computed on copies in host memory");
  return read_span(source);
}

Tensor to_musa(const Tensor& source, Device device) {
  Tensor dense = source;
  if (!source.is_non_overlapping_and_dense()) {
    dense = at::empty(source.sizes(), source.options().pinned_memory(std::nullopt));
    dense._set_conj(source.is_conj());
    dense._set_neg(source.is_neg());
    dense.copy_(source);
  }
  const auto options = source.options().device(device).pinned_memory(std::nullopt);
  Tensor result = at::empty_strided(dense.sizes(), dense.strides(), options);
  result._set_conj(source.is_conj());
  result._set_neg(source.is_neg());
  if (result.numel() != 0) {
    memcpy_tensor(result, dense, /*non_blocking=*/false);
  }
  return result;
}

} // namespace at::musa
