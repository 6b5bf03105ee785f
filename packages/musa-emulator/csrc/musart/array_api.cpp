// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arrays of one or two dimensions, and copies into them.
#include "array.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#include "api_support.h"
#include "engine/memory.h"
#include "engine/stream.h"
#include "engine/transfer.h"

namespace musa_emulator {
namespace {

// CUDA's flags for layers, surfaces, cubes and gathers.
constexpr unsigned kArrayFlags = 1 | 2 | 4 | 8;

// Guards the set of live arrays. Not held while memory is allocated or freed.
std::mutex arrays_mutex;
std::unordered_map<musaArray_const_t, std::unique_ptr<Array>>& arrays() {
  static auto* alive = new std::unordered_map<musaArray_const_t, std::unique_ptr<Array>>;
  return *alive;
}

musaError_t allocate_array(
    int device, const musaChannelFormatDesc& desc, size_t width, size_t height, musaArray_t* array) {
  auto made = std::make_unique<Array>();
  made->desc = desc;
  made->width = width;
  made->rows = height != 0 ? height : 1;
  made->element = element_bytes(desc);
  if (made->element == 0) {
    return musaErrorInvalidChannelDescriptor;
  }
  if (width == 0) {
    return musaErrorInvalidValue;
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(width, made->element, &made->pitch) ||
      __builtin_mul_overflow(made->pitch, made->rows, &bytes)) {
    return musaErrorMemoryAllocation;
  }
  void* data = nullptr;
  if (const musaError_t status = allocate_device(device, bytes, &data); status != musaSuccess) {
    return status;
  }
  made->data = static_cast<char*>(data);
  *array = reinterpret_cast<musaArray_t>(made.get());
  const std::lock_guard lock(arrays_mutex);
  arrays()[*array] = std::move(made);
  return musaSuccess;
}

musaError_t free_array(musaArray_t array) {
  std::unique_ptr<Array> freed;
  {
    const std::lock_guard lock(arrays_mutex);
    const auto found = arrays().find(array);
    if (found == arrays().end()) {
      return musaErrorInvalidResourceHandle;
    }
    freed = std::move(found->second);
    arrays().erase(found);
  }
  return free_device(freed->data);
}

} // namespace

size_t element_bytes(const musaChannelFormatDesc& desc) {
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  size_t components = 0;
  while (components < 4 && bits[components] != 0) {
    ++components;
  }
  for (size_t i = 0; i < 4; ++i) {
    if (bits[i] != (i < components ? bits[0] : 0)) {
      return 0;
    }
  }
  const bool known = bits[0] == 8 || bits[0] == 16 || bits[0] == 32;
  return known && components != 3 && desc.f <= musaChannelFormatKindFloat
      ? components * static_cast<size_t>(bits[0]) / 8
      : 0;
}

const Array* find_array(musaArray_const_t array) {
  const Array* found = nullptr;
  {
    const std::lock_guard lock(arrays_mutex);
    const auto entry = arrays().find(array);
    found = entry != arrays().end() ? entry->second.get() : nullptr;
  }
  // A device reset frees the memory of arrays, which makes their handles invalid.
  return found != nullptr && classify(found->data).type == musaMemoryTypeDevice ? found : nullptr;
}

} // namespace musa_emulator

using namespace musa_emulator;

musaError_t musaMallocArray(
    musaArray_t* array, const musaChannelFormatDesc* desc, size_t width, size_t height, unsigned int flags) {
  return api<"musaMallocArray", kUnsafeInCapture>([&] {
    if (array == nullptr || desc == nullptr || (flags & ~kArrayFlags) != 0) {
      return musaErrorInvalidValue;
    }
    return flags == 0 ? allocate_array(current_device()->ordinal, *desc, width, height, array) : musaErrorNotSupported;
  });
}

musaError_t musaFreeArray(musaArray_t array) {
  return api<"musaFreeArray", kReleases | kUnsafeInCapture>([&] {
    if (array == nullptr) {
      return musaSuccess;
    }
    if (const Array* found = find_array(array)) {
      if (Device* device = find_device(classify(found->data).device)) {
        drain(*device);
      }
    }
    return free_array(array);
  });
}

// The bytes may span several rows, which are contiguous.
musaError_t musaMemcpyToArray(musaArray_t dst, size_t x, size_t y, const void* src, size_t bytes, musaMemcpyKind kind) {
  return api<"musaMemcpyToArray">([&] {
    return with_stream(nullptr, [&](Stream& found) {
      const Array* array = find_array(dst);
      if (array == nullptr || src == nullptr) {
        return array == nullptr ? musaErrorInvalidResourceHandle : musaErrorInvalidValue;
      }
      const size_t offset = y * array->pitch + x;
      if (x >= array->pitch || y >= array->rows || bytes > array->rows * array->pitch - offset) {
        return musaErrorInvalidValue;
      }
      return submit_copy(found, linear_copy(array->data + offset, src, bytes, kind), Host::Waits);
    });
  });
}

musaError_t musaMemcpy2DToArray(
    musaArray_t dst, size_t x, size_t y, const void* src, size_t pitch, size_t width, size_t height,
    musaMemcpyKind kind) {
  return api<"musaMemcpy2DToArray">([&] {
    return with_stream(nullptr, [&](Stream& found) {
      const Array* array = find_array(dst);
      if (array == nullptr) {
        return musaErrorInvalidResourceHandle;
      }
      if (src == nullptr || x > array->pitch || width > array->pitch - x || y > array->rows ||
          height > array->rows - y) {
        return musaErrorInvalidValue;
      }
      if (height > 1 && width > pitch) {
        return musaErrorInvalidPitchValue;
      }
      CopyOperation copy = linear_copy(array->data + y * array->pitch + x, src, width, kind);
      copy.height = height;
      copy.dst_pitch = array->pitch;
      copy.src_pitch = pitch;
      return submit_copy(found, std::move(copy), Host::Waits);
    });
  });
}
