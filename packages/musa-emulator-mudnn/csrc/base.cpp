// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Handle and Tensor.
#include <algorithm>

#include "mudnn.h"

namespace musa::dnn {

static_assert(MUDNN_VERSION == 3100);

int64_t GetVersion() { return MUDNN_VERSION; }

Handle::Handle() : device_(0) { musaGetDevice(&device_); }

Handle::Handle(int device) : device_(device) {}

Handle::~Handle() = default;

Status Handle::SetStream(musaStream_t stream) {
  stream_ = stream;
  return Status::SUCCESS;
}

musaStream_t Handle::GetStream() const { return stream_; }

Status Handle::SetAllowTF32(bool allow) {
  allow_tf32_ = allow;
  return Status::SUCCESS;
}

Tensor::Tensor() = default;
Tensor::Tensor(const Tensor&) = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(const Tensor&) = default;
Tensor& Tensor::operator=(Tensor&&) noexcept = default;
Tensor::~Tensor() = default;

Status Tensor::SetAddr(const void* address) {
  address_ = const_cast<void*>(address);
  return Status::SUCCESS;
}

Status Tensor::SetType(Type type) {
  type_ = type;
  return Status::SUCCESS;
}

Status Tensor::SetFormat(Format format) {
  format_ = format;
  return Status::SUCCESS;
}

namespace {

Status accept_dims(int64_t ndim, const int64_t* dims) {
  if (ndim < 0 || (ndim > 0 && dims == nullptr)) {
    return Status::INVALID_PARAMETER;
  }
  if (ndim > Tensor::kMaxDims) {
    return Status::NOT_SUPPORTED;
  }
  int64_t signs = 0;
#pragma GCC unroll 1
  for (int64_t i = 0; i < ndim; ++i) {
    signs |= dims[i];
  }
  return signs < 0 ? Status::INVALID_PARAMETER : Status::SUCCESS;
}

} // namespace

Status Tensor::SetNdInfo(int64_t ndim, const int64_t* dims) {
  const Status status = accept_dims(ndim, dims);
  if (status != Status::SUCCESS) {
    return status;
  }
  ndim_ = static_cast<int>(ndim);
  int64_t stride = 1;
  for (int i = ndim_ - 1; i >= 0; --i) {
    dims_[i] = dims[i];
    strides_[i] = stride;
    stride *= std::max<int64_t>(dims[i], 1);
  }
  return Status::SUCCESS;
}

// Called for every operand of every operation. The loops have few iterations, so scalar code is as fast as vector code,
// and smaller.
Status Tensor::SetNdInfo(int64_t ndim, const int64_t* dims, const int64_t* strides) {
  const Status status = ndim > 0 && strides == nullptr ? Status::INVALID_PARAMETER : accept_dims(ndim, dims);
  if (status != Status::SUCCESS) [[unlikely]] {
    return status;
  }
  ndim_ = static_cast<int>(ndim);
#pragma GCC unroll 1
  for (int i = 0; i < ndim_; ++i) {
    dims_[i] = dims[i];
    strides_[i] = strides[i];
  }
  return Status::SUCCESS;
}

Status Tensor::SetNdInfo(std::initializer_list<int64_t> dims) {
  return SetNdInfo(static_cast<int64_t>(dims.size()), dims.begin());
}

Status Tensor::SetNdInfo(std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides) {
  if (dims.size() != strides.size()) {
    return Status::INVALID_PARAMETER;
  }
  return SetNdInfo(static_cast<int64_t>(dims.size()), dims.begin(), strides.begin());
}

Status Tensor::GetNdInfo(std::vector<int64_t>& dims) const {
  dims.assign(dims_, dims_ + std::max(ndim_, 0));
  return Status::SUCCESS;
}

Status Tensor::GetNdInfo(std::vector<int64_t>& dims, std::vector<int64_t>& strides) const {
  strides.assign(strides_, strides_ + std::max(ndim_, 0));
  return GetNdInfo(dims);
}

Status Tensor::SetQuantizationInfo(float scale) {
  scale_ = scale;
  return Status::SUCCESS;
}

} // namespace musa::dnn
