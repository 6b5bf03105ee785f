// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/array.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#include "engine/memory.h"

namespace musa_emulator {
namespace {

// Guards the set of live arrays. Not held while memory is allocated or freed.
std::mutex arrays_mutex;
std::unordered_map<musaArray_const_t, std::unique_ptr<Array>>& arrays() {
  static auto* alive = new std::unordered_map<musaArray_const_t, std::unique_ptr<Array>>;
  return *alive;
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
  return known && components != 3 && desc.f <= musaChannelFormatKindFloat ? components * static_cast<size_t>(bits[0]) / 8 : 0;
}

musaError_t allocate_array(
    int device, const musaChannelFormatDesc& desc, musaExtent extent, unsigned flags, musaArray_t* array) {
  auto made = std::make_unique<Array>();
  made->desc = desc;
  made->extent = extent;
  made->flags = flags;
  made->element = element_bytes(desc);
  if (made->element == 0) {
    return musaErrorInvalidChannelDescriptor;
  }
  const bool cubemap = (flags & kArrayCubemap) != 0, layered = (flags & kArrayLayered) != 0;
  const size_t faces = cubemap ? 6 : 1;
  if ((flags & ~(kArrayLayered | kArraySurface | kArrayCubemap | kArrayGather)) != 0 || extent.width == 0 ||
      (layered && extent.depth == 0) || (!layered && !cubemap && extent.depth != 0 && extent.height == 0) ||
      (cubemap && (extent.width != extent.height || extent.depth % faces != 0 || (!layered && extent.depth != faces)))) {
    return musaErrorInvalidValue;
  }
  made->rows = extent.height != 0 ? extent.height : 1;
  made->slices = extent.depth != 0 ? extent.depth : 1;
  size_t bytes = 0;
  if (__builtin_mul_overflow(extent.width, made->element, &made->pitch) ||
      __builtin_mul_overflow(made->pitch, made->rows, &bytes) || __builtin_mul_overflow(bytes, made->slices, &bytes)) {
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
