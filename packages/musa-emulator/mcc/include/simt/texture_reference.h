// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Texture references over linear memory, as muAlg's TexRefInputIterator uses them.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

#pragma GCC system_header

extern "C" MUSA_PUBLIC musaError_t musaDeviceSynchronize(void); // the program's headers come later

// A variable at namespace scope that kernels read without a parameter.
template <class T>
struct texture {
  texture(int /*normalized coordinates, unused by tex1Dfetch*/ = 0) {}

  musaChannelFormatDesc channelDesc = {};
  const T* data = nullptr;
  size_t count = 0;
};

// Waits for the device, because kernels launched earlier must read the memory that was bound at their launch.
template <class T>
inline musaError_t musaUnbindTexture(texture<T>& reference) {
  const musaError_t status = reference.data == nullptr ? musaSuccess : musaDeviceSynchronize();
  if (status == musaSuccess) {
    reference.data = nullptr;
    reference.count = 0;
  }
  return status;
}

// `offset`, which may be null, is set to 0, because any alignment is supported.
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

// Returns 0 if the index is out of range.
template <class T>
inline T tex1Dfetch(const texture<T>& reference, int index) {
  return index >= 0 && static_cast<size_t>(index) < reference.count ? reference.data[index] : T();
}
