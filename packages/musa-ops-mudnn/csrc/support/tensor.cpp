// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/tensor.h"

#include <array>

#include "support/call.h"

namespace musa_ops_mudnn {
namespace {

using Type = dnn::Tensor::Type;
using Format = dnn::Tensor::Format;

void require(dnn::Status status) {
  check(status, "describing a tensor", {});
}

Format format_of(int64_t dims, bool channels_last) {
  switch (dims) {
    case 3: return channels_last ? Format::NWC : Format::NCW;
    case 4: return channels_last ? Format::NHWC : Format::NCHW;
    case 5: return channels_last ? Format::NDHWC : Format::NCDHW;
    default: return Format::UNKNOWN;
  }
}

// muDNN's descriptors hold plain pointers, of operands that it only reads too.
void* address_of(const at::Tensor& tensor, Access access) {
  return access == Access::Read ? const_cast<void*>(tensor.const_data_ptr()) : tensor.mutable_data_ptr();
}

} // namespace

dnn::Tensor::Type type_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf: return Type::HALF;
    case at::kBFloat16: return Type::BFLOAT16;
    case at::kFloat: return Type::FLOAT;
    case at::kDouble: return Type::DOUBLE;
    case at::kBool: return Type::BOOL;
    case at::kChar: return Type::INT8;
    case at::kShort: return Type::INT16;
    case at::kInt: return Type::INT32;
    case at::kLong: return Type::INT64;
    case at::kByte: return Type::UINT8;
    case at::kQInt8: return Type::QINT8;
    case at::kFloat8_e5m2: return Type::FP8_E5M2;
    case at::kFloat8_e4m3fn: return Type::FP8_E4M3;
    default: TORCH_CHECK(false, "muDNN has no data type for ", dtype, ".");
  }
}

dnn::Tensor describe(const at::Tensor& tensor, Access access) {
  dnn::Tensor result;
  if (tensor.defined()) {
    require(result.SetAddr(address_of(tensor, access)));
    require(result.SetType(type_of(tensor.scalar_type())));
    require(result.SetNdInfo(tensor.dim(), tensor.sizes().data(), tensor.strides().data()));
  }
  return result;
}

dnn::Tensor operand(const at::Tensor& tensor) {
  return describe(tensor, kRead);
}

dnn::Tensor operand(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? operand(*tensor) : dnn::Tensor();
}

dnn::Tensor describe_as(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides, Access access) {
  dnn::Tensor result;
  require(result.SetAddr(address_of(tensor, access)));
  require(result.SetType(type_of(tensor.scalar_type())));
  require(result.SetNdInfo(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data()));
  return result;
}

dnn::Tensor describe_channels(const at::Tensor& tensor, at::MemoryFormat format, Access access) {
  const int64_t dims = tensor.dim();
  const bool channels_last =
      format == at::MemoryFormat::ChannelsLast || format == at::MemoryFormat::ChannelsLast3d;
  std::array<int64_t, 5> sizes{};
  std::array<int64_t, 5> strides{};
  TORCH_INTERNAL_ASSERT(dims >= 3 && dims <= 5);
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t from = !channels_last || i == 0 ? i : i == dims - 1 ? 1 : i + 1;
    sizes[i] = tensor.size(from);
    strides[i] = tensor.stride(from);
  }
  dnn::Tensor result = describe_as(
      tensor, {sizes.data(), static_cast<size_t>(dims)}, {strides.data(), static_cast<size_t>(dims)}, access);
  require(result.SetFormat(format_of(dims, channels_last)));
  return result;
}

at::MemoryFormat channels_format(const at::Tensor& tensor) {
  const at::MemoryFormat format = tensor.suggest_memory_format();
  return format == at::MemoryFormat::Preserve ? at::MemoryFormat::Contiguous : format;
}

} // namespace musa_ops_mudnn
