// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Images and volumes with one to three spatial dimensions, all treated as three: missing leading dimensions have size
// 1.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>

namespace musa_ops_ported {

inline constexpr int kSpatial = 3;

struct Place {
  int64_t batch, channel, at[kSpatial];
};

// Divides in 32 bits if possible, which is the common case and much cheaper.
C10_HOST_DEVICE inline int64_t quotient(int64_t index, int64_t size) {
  return ((index | size) >> 31) == 0 ? static_cast<uint32_t>(index) / static_cast<uint32_t>(size) : index / size;
}

// Sizes and strides of (batch, channel, spatial...), with an optional batch dimension and any strides.
struct Volume {
  int64_t batches = 1, channels = 1, size[kSpatial] = {1, 1, 1};
  int64_t batch_stride = 0, channel_stride = 0, stride[kSpatial] = {0, 0, 0};

  Volume(const at::Tensor& tensor, int spatial) {
    const int64_t dims = tensor.dim();
    TORCH_INTERNAL_ASSERT(dims == spatial + 1 || dims == spatial + 2);
    for (int d = 0; d < spatial; ++d) {
      size[kSpatial - 1 - d] = tensor.size(dims - 1 - d);
      stride[kSpatial - 1 - d] = tensor.stride(dims - 1 - d);
    }
    channels = tensor.size(dims - 1 - spatial);
    channel_stride = tensor.stride(dims - 1 - spatial);
    if (dims == spatial + 2) {
      batches = tensor.size(0);
      batch_stride = tensor.stride(0);
    }
  }

  int64_t count() const { return batches * channels * size[0] * size[1] * size[2]; }

  // The position of element `index`; the last dimension varies fastest.
  C10_HOST_DEVICE Place place(int64_t index) const {
    Place place;
    for (int d = kSpatial - 1; d >= 0; --d) {
      const int64_t rest = quotient(index, size[d]);
      place.at[d] = index - rest * size[d];
      index = rest;
    }
    place.batch = quotient(index, channels);
    place.channel = index - place.batch * channels;
    return place;
  }
  C10_HOST_DEVICE int64_t plane(const Place& place) const {
    return place.batch * batch_stride + place.channel * channel_stride;
  }
  C10_HOST_DEVICE int64_t inside(int64_t z, int64_t y, int64_t x) const {
    return z * stride[0] + y * stride[1] + x * stride[2];
  }
  C10_HOST_DEVICE int64_t offset(const Place& place) const {
    return plane(place) + inside(place.at[0], place.at[1], place.at[2]);
  }
  // The index of a position in its plane, as stored by max pooling.
  C10_HOST_DEVICE int64_t number(int64_t z, int64_t y, int64_t x) const { return (z * size[1] + y) * size[2] + x; }
};

struct Span {
  int64_t begin, end, step = 1;
};

} // namespace musa_ops_ported
