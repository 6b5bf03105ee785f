// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty_like.h>
#include <c10/musa/MUSASyncDebugMode.h>
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/host/host_forms.h>
#include <musa_runtime/op_pack.h>
#include <torch/library.h>
#include <transfer/memcpy.h>
#include <transfer/strided.h>

namespace at::musa {
namespace {

using musa_runtime::HostCopies;
using musa_runtime::HostTensor;

// The most SDK calls for a strided copy within a device that no pack serves; one that needs more goes through the host.
constexpr int64_t kMostCopies = 32;

bool is_as_stored(const Tensor& dst, const Tensor& src) {
  return dst.scalar_type() == src.scalar_type() && dst.is_conj() == src.is_conj() && dst.is_neg() == src.is_neg();
}

// A tensor of this dtype with the target's sizes, and its strides if it is dense. It has the target's conj and neg bits if
// the dtype is the target's.
Tensor dense_form(const Tensor& dst, Device device, at::ScalarType dtype) {
  const auto options = dst.options().device(device).dtype(dtype).pinned_memory(std::nullopt);
  Tensor dense = at::empty_like(dst, options, at::MemoryFormat::Preserve);
  dense._set_conj(dtype == dst.scalar_type() && dst.is_conj());
  dense._set_neg(dtype == dst.scalar_type() && dst.is_neg());
  return dense;
}

// Converts into a dense CPU tensor.
Tensor host_form(const Tensor& src, const Tensor& dst) {
  Tensor host = dense_form(dst, kCPU, dst.scalar_type());
  host.copy_(src);
  return host;
}

// Converts into a dense tensor on the source's device, or returns the source if that is one already.
Tensor sent_form(const Tensor& src, const Tensor& dst, at::ScalarType dtype) {
  if (is_memcpy(dense_form(dst, kMeta, dtype), src)) {
    return src;
  }
  Tensor sent = dense_form(dst, src.device(), dtype);
  copy_on_device(sent, src);
  return sent;
}

// ---- torch_musa::_copy_on_device(self, src): within a device, equal shapes. An operator, so that packs may serve it.

void copy_without_kernel(const Tensor& self, const Tensor& src) {
  if (is_as_stored(self, src) && memcpy_strided(self, src, kMostCopies)) {
    return;
  }
  if (C10_UNLIKELY(musa_runtime::capturing())) {
    musa_runtime::refuse_to_capture(
        "aten::copy_", "it converts or rearranges data through the host, since no pack serves these operands");
  }
  c10::musa::check_sync("a copy that converts or rearranges through the host, since no pack serves its operands");
  const Tensor host = host_form(read_span(src), self);
  if (is_memcpy(self, host)) {
    memcpy_tensor(self, host, /*non_blocking=*/false);
  } else {
    (void)memcpy_strided(self, to_musa(host, self.device()));
  }
}

TORCH_LIBRARY_FRAGMENT(torch_musa, m) {
  m.def("_copy_on_device(Tensor(a!) self, Tensor src) -> ()");
  // Called by the provider of copies with host tensors.
  m.impl("_copy_on_device", c10::DispatchKey::CPU, [](const Tensor& self, const Tensor& src) { self.copy_(src); });
}

MUSA_OP_PACK(runtime, pack) { pack.impl("torch_musa::_copy_on_device", TORCH_FN(copy_without_kernel)); }

// ---- One function for each way of a copy. Tensors are strided, not empty and of equal sizes.

enum class Way : uint8_t {
  Memcpy, // one call of the SDK
  OnDevice, // a kernel
  WithHost, // converted or rearranged, with the host on one side
  BetweenDevices,
};

Way way_of(const Tensor& dst, const Tensor& src) {
  if (is_musa(dst) && is_musa(src)) {
    return dst.device() != src.device() ? Way::BetweenDevices : is_memcpy(dst, src) ? Way::Memcpy : Way::OnDevice;
  }
  return is_memcpy(dst, src) ? Way::Memcpy : Way::WithHost;
}

// The device rearranges and converts, in a dense temporary, so that no byte between elements is written. The host does it
// if it accesses every element anyway, to convert so that fewer bytes are transferred, or to skip gaps in its own tensor:
// the device then needs no temporary.
void copy_with_host(const Tensor& dst, const Tensor& src) {
  if (C10_UNLIKELY(musa_runtime::capturing())) {
    musa_runtime::refuse_to_capture(
        "aten::copy_", "it converts or rearranges data between the host and the device, which needs the host to wait");
  }
  if (is_musa(src)) {
    const bool widens = dst.itemsize() > src.itemsize();
    const bool same_dtype = dst.scalar_type() == src.scalar_type();
    const bool expanded = span_bytes(src) < src.nbytes();
    if (widens || (same_dtype && (expanded || !dst.is_non_overlapping_and_dense()))) {
      dst.copy_(read_elements(src));
      return;
    }
    const Tensor sent = sent_form(src, dst, dst.scalar_type());
    if (is_memcpy(dst, sent)) {
      memcpy_tensor(dst, sent, /*non_blocking=*/false);
    } else {
      dst.copy_(read_span(sent));
    }
    return;
  }
  const bool narrows = src.itemsize() > dst.itemsize();
  const bool gathers = is_as_stored(dst, src) && span_bytes(src) > src.nbytes() && dst.is_non_overlapping_and_dense();
  write_elements(dst, narrows || gathers ? host_form(src, dst) : src);
}

// Converted on the source's device into the target's layout, and rearranged on the target's if that is not dense.
void copy_between_devices(const Tensor& dst, const Tensor& src) {
  const Tensor sent = is_memcpy(dst, src) ? src : sent_form(src, dst, dst.scalar_type());
  if (is_memcpy(dst, sent)) {
    memcpy_between_devices(dst, sent);
    return;
  }
  const Tensor landed = dense_form(dst, dst.device(), dst.scalar_type());
  memcpy_between_devices(landed, sent);
  copy_on_device(dst, landed);
}

// dst.copy_(src) between two tensors of which at least one is on a musa device: dtypes, strides, conj and neg bits may
// differ. non_blocking: returns while a copy between the device and pinned host memory is still in progress on the current
// stream.
void copy_dense(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (dst.numel() == 0) {
    return;
  }
  const Way way = way_of(dst, src);
  if (is_musa(dst) != is_musa(src) && !(non_blocking && way == Way::Memcpy)) {
    c10::musa::check_sync("a copy between device and host");
  }
  switch (way) {
    case Way::Memcpy: return memcpy_tensor(dst, src, non_blocking);
    case Way::OnDevice: return copy_on_device(dst, src);
    case Way::WithHost: return copy_with_host(dst, src);
    case Way::BetweenDevices: return copy_between_devices(dst, src);
  }
}

// Whether both have the same elements in the same order, so that there is nothing to copy.
bool is_same_view(const Tensor& self, const Tensor& src) {
  return self.is_alias_of(src) && self.storage_offset() == src.storage_offset() && self.sizes() == src.sizes() &&
      self.strides() == src.strides() && self.scalar_type() == src.scalar_type() && self.is_conj() == src.is_conj() &&
      self.is_neg() == src.is_neg();
}

Tensor& copy_(Tensor& self, const Tensor& src, bool non_blocking) {
  TORCH_CHECK(self.defined() && src.defined(), "copy_: both tensors must be defined");
  if (self.is_same(src)) {
    return self;
  }
  if (src.layout() != kStrided || self.layout() != kStrided || src.is_meta() || self.is_meta() || src.is_quantized() ||
      self.is_quantized() || src._is_zerotensor() || self._is_zerotensor()) {
    // Device-independent cases and errors are handled by torch's own copy.
    return at::native::copy_(self, src, non_blocking);
  }
  if (is_same_view(self, src)) {
    return self;
  }
  at::assert_no_internal_overlap(self);
  at::assert_no_partial_overlap(self, src);
  if (src.sizes() == self.sizes()) {
    copy_dense(self, src, non_blocking);
  } else {
    copy_dense(self, *expand_inplace(self, src, "copy"), non_blocking);
  }
  return self;
}

Tensor copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  Tensor target = dst;
  copy_(target, self, non_blocking);
  return dst;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  at::native::resize_output(dst, self.sizes());
  return copy_from(self, dst, false);
}

Scalar _local_scalar_dense(const Tensor& self) {
  if (C10_UNLIKELY(musa_runtime::capturing())) {
    musa_runtime::refuse_to_capture(
        "aten::_local_scalar_dense (what .item(), bool() and float() call)",
        "it reads a value on the host that the device has not computed yet");
  }
  c10::musa::check_sync("reading a tensor's value");
  const auto read = [&self]<typename T>(T value) -> Scalar {
    read_number(&value, self.const_data_ptr(), sizeof(T), self.device());
    return Scalar(value);
  };
  if (!self._is_zerotensor()) {
    switch (self.scalar_type()) {
      case kFloat: return read(float{});
      case kDouble: return read(double{});
      case kLong: return read(int64_t{});
      case kInt: return read(int32_t{});
      case kBool: return read(bool{});
      default: break;
    }
  }
  return at::cpu::_local_scalar_dense(read_span(self));
}

// Between quantized tensors, or from floats into one: the host forms have the quantizers.
Tensor& copy_quantized_(Tensor& self, const Tensor& src, bool non_blocking) {
  HostCopies forms;
  const Tensor host_self = forms.host_written(self, HostTensor::Any);
  const Tensor host_src = forms.host(src, HostTensor::Any);
  forms.enter();
  host_self.copy_(host_src, non_blocking);
  forms.write_back(self, host_self);
  return self;
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) { m.impl("copy_", TORCH_FN(copy_quantized_)); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(_local_scalar_dense));
}

} // namespace
} // namespace at::musa
