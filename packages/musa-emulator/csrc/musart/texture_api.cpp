// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Texture objects: a description of memory, whose address is the handle. Kernels read through it; simt/texture.h.
#include <cstdint>
#include <mutex>
#include <set>

#include "api_support.h"
#include "engine/memory.h"
#include "simt/texture_object.h"

using namespace musa_emulator;
using musa_simt::TextureObject;

namespace {

// Guards the set of texture objects that are alive.
std::mutex textures_mutex;
std::set<musaTextureObject_t>& textures() {
  static auto* alive = new std::set<musaTextureObject_t>;
  return *alive;
}

// 0 for a descriptor of no element: components of one size, which is 8, 16 or 32 bits.
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

musaError_t describe(const musaResourceDesc& resource, const musaTextureDesc& texture, TextureObject* made) {
  made->resource = resource;
  made->texture = texture;
  const musaChannelFormatDesc* desc = nullptr;
  switch (resource.resType) {
    case musaResourceTypeLinear:
      made->data = static_cast<const char*>(resource.res.linear.devPtr);
      desc = &resource.res.linear.desc;
      made->bytes = element_bytes(*desc);
      made->width = made->bytes != 0 ? resource.res.linear.sizeInBytes / made->bytes : 0;
      made->height = 1;
      made->pitch = resource.res.linear.sizeInBytes;
      break;
    case musaResourceTypePitch2D:
      made->data = static_cast<const char*>(resource.res.pitch2D.devPtr);
      desc = &resource.res.pitch2D.desc;
      made->bytes = element_bytes(*desc);
      made->width = resource.res.pitch2D.width;
      made->height = resource.res.pitch2D.height;
      made->pitch = resource.res.pitch2D.pitchInBytes;
      break;
    default: return musaErrorNotSupported; // arrays
  }
  if (made->bytes == 0) {
    return musaErrorInvalidChannelDescriptor;
  }
  if (made->width == 0 || made->height == 0 || made->width * made->bytes > made->pitch) {
    return musaErrorInvalidValue;
  }
  // A number of a texture is read as it is, or an integer of 8 or 16 bits as a part of 1.
  const bool normalized = texture.readMode == musaReadModeNormalizedFloat;
  if (normalized && (desc->f == musaChannelFormatKindFloat || desc->x == 32)) {
    return musaErrorInvalidNormSetting;
  }
  if (texture.filterMode == musaFilterModeLinear && !normalized && desc->f != musaChannelFormatKindFloat) {
    return musaErrorInvalidFilterSetting;
  }
  const PointerInfo info = classify(made->data);
  const size_t extent = (made->height - 1) * made->pitch + made->width * made->bytes;
  if (info.type == musaMemoryTypeUnregistered) {
    return musaErrorInvalidValue;
  }
  return check_fill(made->data, extent);
}

} // namespace

musaChannelFormatDesc musaCreateChannelDesc(int x, int y, int z, int w, musaChannelFormatKind f) {
  return {x, y, z, w, f};
}

musaError_t musaCreateTextureObject(
    musaTextureObject_t* object, const musaResourceDesc* resource, const musaTextureDesc* texture,
    const musaResourceViewDesc* view) {
  return api<"musaCreateTextureObject">([&] {
    if (object == nullptr || resource == nullptr || texture == nullptr || view != nullptr) {
      return musaErrorInvalidValue; // a view is for arrays
    }
    current_device();
    TextureObject described{};
    const musaError_t status = describe(*resource, *texture, &described);
    if (status == musaSuccess) {
      const std::lock_guard lock(textures_mutex);
      *object = reinterpret_cast<musaTextureObject_t>(new TextureObject(described));
      textures().insert(*object);
    }
    return status;
  });
}

musaError_t musaDestroyTextureObject(musaTextureObject_t object) {
  return api<"musaDestroyTextureObject", kReleases>([&] {
    if (object == 0) {
      return musaSuccess;
    }
    const std::lock_guard lock(textures_mutex);
    if (textures().erase(object) == 0) {
      return musaErrorInvalidValue;
    }
    delete reinterpret_cast<TextureObject*>(object);
    return musaSuccess;
  });
}

musaError_t musaGetTextureObjectResourceDesc(musaResourceDesc* resource, musaTextureObject_t object) {
  return api<"musaGetTextureObjectResourceDesc">([&] {
    const std::lock_guard lock(textures_mutex);
    if (resource == nullptr || textures().count(object) == 0) {
      return musaErrorInvalidValue;
    }
    *resource = reinterpret_cast<TextureObject*>(object)->resource;
    return musaSuccess;
  });
}
