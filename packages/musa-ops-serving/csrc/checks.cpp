// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "checks.h"

#include <c10/util/Exception.h>

#include <limits>

namespace musa_ops_serving {

Dtype check_floating(const char* op, const Named& named) {
  switch (named.tensor.scalar_type()) {
    case at::kHalf: return Dtype::kFloat16;
    case at::kBFloat16: return Dtype::kBFloat16;
    case at::kFloat: return Dtype::kFloat32;
    default:
      TORCH_CHECK(
          false, op, ": expected ", named.name, " of dtype float16, bfloat16 or float32, got ",
          named.tensor.scalar_type(), ".\nFix: ", named.name, ".float()");
  }
}

void check_device(const char* op, const Named& named, c10::Device device) {
  TORCH_CHECK(
      named.tensor.device() == device, op, ": expected all tensors on one device, but ", named.name, " is on ",
      named.tensor.device(), " and another on ", device, ".\nFix: ", named.name, ".to(\"", device, "\")");
}

Dtype check_alike(const char* op, std::initializer_list<Named> tensors) {
  const Named& first = *tensors.begin();
  const Dtype dtype = check_floating(op, first);
  for (const Named& other : tensors) {
    check_device(op, other, first.tensor.device());
    TORCH_CHECK(
        other.tensor.scalar_type() == first.tensor.scalar_type(), op, ": expected ", other.name, " of the dtype of ",
        first.name, ", ", first.tensor.scalar_type(), ", got ", other.tensor.scalar_type(), ".\nFix: ", other.name,
        ".to(", first.name, ".dtype)");
  }
  return dtype;
}

void check_dims(const char* op, const Named& named, int64_t dims, const char* meaning) {
  TORCH_CHECK(
      named.tensor.dim() == dims, op, ": expected ", named.name, " of shape ", meaning, ", got ", named.tensor.sizes());
}

void check_kind(const char* op, const Named& named, at::ScalarType dtype, int64_t dims, c10::Device device) {
  TORCH_CHECK(
      named.tensor.scalar_type() == dtype, op, ": expected ", named.name, " of dtype ", dtype, ", got ",
      named.tensor.scalar_type(), ".\nFix: convert it once, where it is made; the operator copies nothing");
  TORCH_CHECK(
      named.tensor.dim() == dims, op, ": expected ", named.name, " of ", dims, " dimensions, got shape ",
      named.tensor.sizes());
  check_device(op, named, device);
}

void check_sizes(const char* op, const Named& named, at::IntArrayRef sizes, const char* meaning) {
  TORCH_CHECK(
      named.tensor.sizes() == sizes, op, ": expected ", named.name, " of shape ", sizes, ", ", meaning, ", got ",
      named.tensor.sizes());
}

void check_int32(const char* op, const char* name, int64_t value) {
  TORCH_CHECK(
      value >= 0 && value <= std::numeric_limits<int32_t>::max(), op, ": ", name, " is ", value,
      ", but must be between 0 and 2^31 - 1");
}

bool is_aligned(const at::Tensor& tensor) {
  constexpr int64_t eight = 8;
  const int64_t bytes = std::min<int64_t>(eight * static_cast<int64_t>(tensor.element_size()), 16);
  if (reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % bytes != 0 || tensor.size(-1) % eight != 0) {
    return false;
  }
  for (int64_t d = 0; d + 1 < tensor.dim(); ++d) {
    if (tensor.size(d) > 1 && tensor.stride(d) % eight != 0) {
      return false;
    }
  }
  return true;
}

at::Tensor readable(const at::Tensor& tensor, bool aligned) {
  const bool adjacent = tensor.size(-1) <= 1 || tensor.stride(-1) == 1;
  return adjacent && (!aligned || tensor.numel() == 0 || is_aligned(tensor))
      ? tensor
      : tensor.clone(at::MemoryFormat::Contiguous);
}

CacheDtype check_cache(const char* op, const Named& cache, const at::Tensor& other) {
  check_dims(op, cache, 4, "[blocks, block_size, kv_heads, head_size]");
  check_device(op, cache, other.device());
  TORCH_CHECK(
      cache.tensor.size(3) <= 1 || cache.tensor.stride(3) == 1, op, ": expected ", cache.name,
      " with a contiguous last dimension, got strides ", cache.tensor.strides(), " for shape ", cache.tensor.sizes(),
      ".\nFix: allocate the cache with head_size as its last dimension");
  const at::ScalarType dtype = cache.tensor.scalar_type();
  if (dtype == other.scalar_type()) {
    return CacheDtype::kSame;
  }
  if (dtype == at::kFloat8_e4m3fn) {
    return CacheDtype::kFloat8E4M3;
  }
  if (dtype == at::kFloat8_e5m2) {
    return CacheDtype::kFloat8E5M2;
  }
  TORCH_CHECK(
      false, op, ": expected ", cache.name, " of dtype ", other.scalar_type(), ", float8_e4m3fn or float8_e5m2, got ",
      dtype, ".\nFix: a cache of bytes is passed as ", cache.name, ".view(torch.float8_e4m3fn)");
}

Scale check_scale(
    const char* op, const char* name, const std::optional<at::Tensor>& scale, int64_t heads, c10::Device device) {
  if (!scale.has_value() || !scale->defined()) {
    return {nullptr, 0};
  }
  check_device(op, {name, *scale}, device);
  TORCH_CHECK(
      scale->scalar_type() == at::kFloat && (scale->numel() == 1 || scale->numel() == heads) && scale->is_contiguous(),
      op, ": expected ", name, " to be a contiguous float32 tensor of one element, or of one for each of the ", heads,
      " key heads, got ", scale->scalar_type(), " of shape ", scale->sizes());
  return {scale->const_data_ptr<float>(), scale->numel() == 1 ? 0 : 1};
}

Integers check_integers(const char* op, const Named& named, int64_t count, c10::Device device) {
  const at::Tensor& tensor = named.tensor;
  check_device(op, named, device);
  TORCH_CHECK(
      (tensor.scalar_type() == at::kInt || tensor.scalar_type() == at::kLong) && tensor.numel() == count &&
          tensor.is_contiguous(),
      op, ": expected ", named.name, " to be a contiguous int32 or int64 tensor of ", count, " elements, got ",
      tensor.scalar_type(), " of shape ", tensor.sizes(), " and strides ", tensor.strides(), ".\nFix: ", named.name,
      ".long().contiguous()");
  return {tensor.const_data_ptr(), tensor.scalar_type() == at::kLong};
}

const float* check_floats(const char* op, const Named& named, int64_t count, c10::Device device, const char* meaning) {
  const at::Tensor& tensor = named.tensor;
  check_device(op, named, device);
  TORCH_CHECK(
      tensor.scalar_type() == at::kFloat && tensor.dim() == 1 && tensor.size(0) == count && tensor.is_contiguous(), op,
      ": expected ", named.name, " to be a contiguous float32 tensor of ", count, " elements, one for each ", meaning,
      ", got ", tensor.scalar_type(), " of shape ", tensor.sizes(), ".\nFix: ", named.name, ".float().contiguous()");
  return tensor.const_data_ptr<float>();
}

const float* check_floats(
    const char* op, const char* name, const std::optional<at::Tensor>& tensor, int64_t count, c10::Device device,
    const char* meaning) {
  return tensor.has_value() && tensor->defined() ? check_floats(op, {name, *tensor}, count, device, meaning) : nullptr;
}

at::Tensor as_heads(const at::Tensor& tensor) {
  switch (tensor.dim()) {
    case 1: return tensor.unsqueeze(0).unsqueeze(0);
    case 2: return tensor.unsqueeze(1);
    case 3: return tensor;
    default: return tensor.reshape({-1, 1, tensor.size(-1)});
  }
}

Heads heads_of(const at::Tensor& tensor) {
  return {const_cast<void*>(tensor.const_data_ptr()), tensor.stride(0), tensor.stride(1)};
}

Cache cache_of(const at::Tensor& tensor) {
  return {const_cast<void*>(tensor.const_data_ptr()), tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

} // namespace musa_ops_serving
