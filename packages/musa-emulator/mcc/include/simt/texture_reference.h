// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Texture references over linear memory, as muAlg's TexRefInputIterator uses them.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

#pragma GCC system_header

extern "C" MUSA_PUBLIC musaError_t musaDeviceSynchronize(void); // this header comes before the program's own

// A variable of namespace scope, which kernels read without a parameter.
template <class T>
struct texture {
  texture(int /*normalized coordinates, which tex1Dfetch has none of*/ = 0) {}

  musaChannelFormatDesc channelDesc = {};
  const T* data = nullptr;
  size_t count = 0;
};

// Waits for the device: kernels that were launched before read the memory that was bound when they were launched.
template <class T>
inline musaError_t musaUnbindTexture(texture<T>& reference) {
  const musaError_t status = reference.data == nullptr ? musaSuccess : musaDeviceSynchronize();
  if (status == musaSuccess) {
    reference.data = nullptr;
    reference.count = 0;
  }
  return status;
}

// `offset`, which may be null, is set to 0: any address can be read here.
template <class T>
inline musaError_t musaBindTexture(size_t* offset, texture<T>& reference, const void* data, size_t bytes = UINT32_MAX) {
  if (data == nullptr) {
    return musaErrorInvalidValue;
  }
  const musaError_t status = musaUnbindTexture(reference);
  if (status == musaSuccess) {
    reference.data = static_cast<const T*>(data);
    reference.count = bytes / sizeof(T);
    if (offset != nullptr) {
      *offset = 0;
    }
  }
  return status;
}

// Outside of the memory it gives 0.
template <class T>
inline T tex1Dfetch(const texture<T>& reference, int index) {
  return index >= 0 && static_cast<size_t>(index) < reference.count ? reference.data[index] : T();
}
