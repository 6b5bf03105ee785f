// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <transfer/strided.h>

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <c10/musa/MUSAGuard.h>
#include <transfer/memcpy.h>

#include <algorithm>

namespace at::musa {
namespace {

// The SDK's limit of a pitch.
constexpr int64_t kMostPitch = std::numeric_limits<int32_t>::max();

// One dimension of a copy. Strides are in bytes.
struct Dim {
  int64_t size;
  int64_t dst;
  int64_t src;
};

// The dimensions of a copy, the innermost first, as few as possible. The first one is the bytes of a row.
c10::SmallVector<Dim, 6> dims_of_copy(const Tensor& dst, const Tensor& src) {
  const auto itemsize = static_cast<int64_t>(dst.itemsize());
  c10::SmallVector<Dim, 6> dims{{itemsize, 1, 1}};
  for (int64_t d = 0; d < dst.dim(); ++d) {
    if (dst.size(d) != 1 && dst.stride(d) != 0) { // all elements along a stride of 0 are one
      dims.push_back({dst.size(d), dst.stride(d) * itemsize, src.stride(d) * itemsize});
    }
  }
  std::sort(dims.begin() + 1, dims.end(), [](const Dim& a, const Dim& b) { return a.dst < b.dst; });
  size_t last = 0;
  for (size_t d = 1; d < dims.size(); ++d) {
    Dim& inner = dims[last];
    if (dims[d].dst == inner.dst * inner.size && dims[d].src == inner.src * inner.size) {
      inner.size *= dims[d].size;
    } else {
      dims[++last] = dims[d];
    }
  }
  dims.resize(last + 1);
  return dims;
}

// A copy with the strides of a CPU tensor whose elements share memory.
Tensor sent_span(const Tensor& host, Device device) {
  Tensor sent =
      at::empty_strided(host.sizes(), host.strides(), host.options().device(device).pinned_memory(std::nullopt));
  sent._set_conj(host.is_conj());
  sent._set_neg(host.is_neg());
  memcpy_on_stream(
      sent.mutable_data_ptr(), host.const_data_ptr(), span_bytes(host), musaMemcpyHostToDevice, device, Then::Wait);
  return sent;
}

} // namespace

size_t span_bytes(const Tensor& tensor) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
}

// Bypasses the dispatcher's other keys: the kernel resolves the lazy bits of conjugation and negation.
void copy_on_device(const Tensor& dst, const Tensor& src) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_musa::_copy_on_device", "")
                             .typed<void(const Tensor&, const Tensor&)>();
  const c10::musa::MUSAGuard guard(dst.device());
  op.redispatch(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), dst, src);
}

bool memcpy_strided(const Tensor& dst, const Tensor& src, int64_t most_calls) {
  c10::SmallVector<Dim, 6> dims = dims_of_copy(dst, src);
  const int64_t width = dims.front().size;
  dims.erase(dims.begin());
  // One call copies the rows of one dimension: the longest of those with strides that a pitch can be.
  const auto rows_in_a_call = [width](const Dim& dim) {
    const bool is_pitch = std::min(dim.dst, dim.src) >= width && std::max(dim.dst, dim.src) <= kMostPitch;
    return is_pitch ? dim.size : 1;
  };
  Dim rows{1, width, width};
  const auto longest = std::max_element(
      dims.begin(), dims.end(), [&](const Dim& a, const Dim& b) { return rows_in_a_call(a) < rows_in_a_call(b); });
  if (longest != dims.end() && rows_in_a_call(*longest) > 1) {
    rows = *longest;
    dims.erase(longest);
  }
  int64_t calls = 1;
  for (const Dim& dim : dims) {
    calls *= dim.size;
  }
  if (calls > most_calls) {
    return false;
  }
  const c10::musa::MUSAKernelGuard guard(dst.device().index());
  const musaStream_t stream = c10::musa::getCurrentMUSAStream(dst.device().index()).stream();
  auto* const to = static_cast<char*>(dst.mutable_data_ptr());
  const auto* const from = static_cast<const char*>(src.const_data_ptr());
  for (int64_t call = 0; call < calls; ++call) {
    int64_t to_offset = 0;
    int64_t from_offset = 0;
    int64_t rest = call;
    for (const Dim& dim : dims) {
      to_offset += rest % dim.size * dim.dst;
      from_offset += rest % dim.size * dim.src;
      rest /= dim.size;
    }
    C10_MUSA_CHECK(musaMemcpy2DAsync(
        to + to_offset, rows.dst, from + from_offset, rows.src, width, rows.size, musaMemcpyDeviceToDevice, stream));
  }
  return true;
}

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

Tensor read_elements(const Tensor& tensor) {
  if (tensor._is_zerotensor() || span_bytes(tensor) <= tensor.nbytes()) {
    return read_span(tensor);
  }
  Tensor dense = at::empty_like(tensor);
  dense._set_conj(tensor.is_conj());
  dense._set_neg(tensor.is_neg());
  copy_on_device(dense, tensor);
  return read_span(dense);
}

Tensor to_cpu(const Tensor& source) {
  Tensor read = read_elements(source);
  if (read.strides() == source.strides()) {
    return read;
  }
  Tensor host = at::empty_strided(source.sizes(), source.strides(), read.options());
  host._set_conj(source.is_conj());
  host._set_neg(source.is_neg());
  host.copy_(read);
  return host;
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

void write_elements(const Tensor& tensor, const Tensor& host) {
  if (tensor.numel() == 0) {
    return;
  }
  if (is_memcpy(tensor, host)) {
    memcpy_tensor(tensor, host, /*non_blocking=*/false);
    return;
  }
  const bool shared = span_bytes(host) < host.nbytes();
  const Tensor staged = shared ? sent_span(host, tensor.device()) : to_musa(host, tensor.device());
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    (void)memcpy_strided(tensor, staged); // kernels of packs refuse such targets
  } else {
    copy_on_device(tensor, staged);
  }
}

} // namespace at::musa
