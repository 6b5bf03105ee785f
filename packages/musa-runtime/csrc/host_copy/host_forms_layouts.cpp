// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Sparse, compressed sparse, quantized and nested tensors: their strided parts are aliased or copied, the rest is metadata.
#include <musa_runtime/host/host_forms.h>

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>
#include <transfer/storage.h>
#include <transfer/strided.h>

namespace musa_runtime {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// Converts one strided part, in either direction.
using Part = std::function<at::Tensor(const at::Tensor&)>;

at::Tensor rebuild_sparse(const at::Tensor& tensor, const Part& part, DispatchKey key) {
  auto* source = at::sparse::get_sparse_impl(tensor);
  at::Tensor result = at::detail::make_tensor<at::SparseTensorImpl>(DispatchKeySet(key), tensor.dtype());
  auto* impl = at::sparse::get_sparse_impl(result);
  impl->resize_(source->sparse_dim(), source->dense_dim(), source->sizes());
  impl->set_indices_and_values_unsafe(part(source->indices()), part(source->values()));
  impl->set_coalesced(source->coalesced());
  return result;
}

at::Tensor rebuild_compressed(const at::Tensor& tensor, const Part& part, DispatchKey key, c10::Device device) {
  auto* source = at::sparse_csr::get_sparse_csr_impl(tensor);
  at::Tensor result =
      at::detail::make_tensor<at::SparseCsrTensorImpl>(DispatchKeySet(key), device, tensor.layout(), tensor.dtype());
  at::sparse_csr::get_sparse_csr_impl(result)->set_member_tensors(
      part(source->compressed_indices()), part(source->plain_indices()), part(source->values()), source->sizes());
  return result;
}

at::Tensor rebuild_nested(const at::Tensor& tensor, const Part& part) {
  auto* source = at::native::get_nested_tensor_impl(tensor);
  // Sizes, strides and offsets of a nested tensor are host-side metadata on every device.
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      part(source->get_unsafe_storage_as_tensor()), source->get_nested_sizes(), source->get_nested_strides(),
      source->get_storage_offsets());
}

at::QuantizerPtr rebuild_quantizer(const at::QuantizerPtr& quantizer, const Part& part) {
  const at::QScheme scheme = quantizer->qscheme();
  if (scheme == at::kPerChannelAffine || scheme == at::kPerChannelSymmetric ||
      scheme == at::kPerChannelAffineFloatQParams) {
    auto* channels = static_cast<at::PerChannelAffineQuantizer*>(quantizer.get());
    return at::make_per_channel_affine_quantizer(
        part(channels->scales()), part(channels->zero_points()), channels->axis(), quantizer->scalar_type());
  }
  return quantizer;
}

// The data of a quantized tensor as a strided tensor of the storage's integer type, sharing memory.
at::Tensor quantized_data(const at::Tensor& tensor, DispatchKey key) {
  c10::Storage storage = tensor.storage();
  at::Tensor data = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, std::move(storage), DispatchKeySet(key),
      c10::scalarTypeToTypeMeta(at::toUnderlying(tensor.scalar_type())));
  data.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return data;
}

at::Tensor rebuild_quantized(const at::Tensor& tensor, const Part& part, DispatchKey data_key, DispatchKey key) {
  at::QuantizerPtr quantizer = at::get_qtensorimpl(tensor)->quantizer();
  at::Tensor data = part(quantized_data(tensor, data_key));
  at::Tensor result = at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(data.storage()), DispatchKeySet(key), tensor.dtype(), rebuild_quantizer(quantizer, part));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(data.sizes(), data.strides(), data.storage_offset());
  return result;
}

enum class Kind { Sparse, Compressed, Quantized, Nested };

Kind kind_of(const at::Tensor& tensor) {
  if (tensor.is_sparse()) {
    return Kind::Sparse;
  }
  if (at::sparse_csr::is_sparse_compressed(tensor)) {
    return Kind::Compressed;
  }
  if (tensor.is_quantized()) {
    return Kind::Quantized;
  }
  TORCH_CHECK(
      tensor.is_nested(), "A tensor of layout ", tensor.layout(), " with keys ", tensor.key_set(),
      " cannot be moved between musa and the host. Fix: convert it to a strided tensor first.");
  return Kind::Nested;
}

} // namespace

at::Tensor HostForms::layout_on_host(const at::Tensor& tensor, Access access) {
  // Quantizer parameters may be in host memory.
  const Part part = [&](const at::Tensor& each) { return converted(each, HostTensor::Any, access); };
  switch (kind_of(tensor)) {
    case Kind::Sparse: return rebuild_sparse(tensor, part, DispatchKey::SparseCPU);
    case Kind::Compressed: return rebuild_compressed(tensor, part, DispatchKey::SparseCsrCPU, c10::Device(c10::kCPU));
    case Kind::Quantized: return rebuild_quantized(tensor, part, DispatchKey::PrivateUse1, DispatchKey::QuantizedCPU);
    case Kind::Nested: return rebuild_nested(tensor, part);
  }
  TORCH_INTERNAL_ASSERT(false, "unreachable");
}

at::Tensor HostForms::layout_on_device(const at::Tensor& result) {
  const Part part = [&](const at::Tensor& each) { return device(each); };
  switch (kind_of(result)) {
    case Kind::Sparse: return rebuild_sparse(result, part, DispatchKey::SparsePrivateUse1);
    case Kind::Compressed: return rebuild_compressed(result, part, DispatchKey::SparseCsrPrivateUse1, target());
    case Kind::Quantized: return rebuild_quantized(result, part, DispatchKey::CPU, DispatchKey::QuantizedPrivateUse1);
    case Kind::Nested: return rebuild_nested(result, part);
  }
  TORCH_INTERNAL_ASSERT(false, "unreachable");
}

void HostForms::write_back_layout(const at::Tensor& original, const at::Tensor& host) {
  switch (kind_of(original)) {
    case Kind::Sparse: {
      const at::Tensor changed = layout_on_device(host);
      auto* from = at::sparse::get_sparse_impl(changed);
      auto* to = at::sparse::get_sparse_impl(original);
      to->raw_resize_(from->sparse_dim(), from->dense_dim(), from->sizes());
      to->set_indices_and_values_unsafe(from->indices(), from->values());
      to->set_coalesced(from->coalesced());
      return;
    }
    case Kind::Compressed: {
      const at::Tensor changed = layout_on_device(host);
      auto* from = at::sparse_csr::get_sparse_csr_impl(changed);
      at::sparse_csr::get_sparse_csr_impl(original)->set_member_tensors(
          from->compressed_indices(), from->plain_indices(), from->values(), from->sizes());
      return;
    }
    case Kind::Quantized: {
      auto* impl = at::get_qtensorimpl(original);
      if (copies()) {
        // Into the memory that it has: views of it show the change.
        if (original.sizes() != host.sizes() || original.strides() != host.strides()) {
          at::musa::restride(original, host.sizes(), host.strides());
        }
        copied_bytes_ += host.numel() * host.itemsize();
        at::musa::write_elements(
            quantized_data(original, DispatchKey::PrivateUse1), quantized_data(host, DispatchKey::CPU));
        const Part part = [&](const at::Tensor& each) { return device(each); };
        impl->set_quantizer_(rebuild_quantizer(at::get_qtensorimpl(host)->quantizer(), part));
        return;
      }
      const at::Tensor changed = layout_on_device(host);
      impl->set_storage_keep_dtype(changed.storage());
      impl->set_sizes_and_strides(changed.sizes(), changed.strides(), changed.storage_offset());
      impl->set_quantizer_(at::get_qtensorimpl(changed)->quantizer());
      return;
    }
    case Kind::Nested: {
      if (copies()) {
        write_back(
            at::native::get_nested_tensor_impl(original)->get_unsafe_storage_as_tensor(),
            at::native::get_nested_tensor_impl(host)->get_unsafe_storage_as_tensor());
      }
      return;
    }
  }
}

} // namespace musa_runtime
