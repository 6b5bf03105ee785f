// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Texture objects: descriptions of memory, with their address as the handle. Kernels access them in simt/texture.h.
#include <cstdint>
#include <mutex>
#include <set>

#include "api_support.h"
#include "array.h"
#include "engine/checked_size.h"
#include "engine/memory.h"
#include "simt/texture_object.h"

using namespace musa_emulator;
using musa_simt::TextureObject;

namespace {

// Guards the set of live objects.
std::mutex textures_mutex;
std::set<musaTextureObject_t>& textures() {
  static auto* alive = new std::set<musaTextureObject_t>;
  return *alive;
}

musaError_t describe(const musaResourceDesc& resource, const musaTextureDesc& texture, TextureObject* made) {
  made->texture = texture;
  for (int i = 0; i < 2; ++i) {
    const bool border = texture.addressMode[i] == musaAddressModeBorder;
    made->mode[i] = texture.normalizedCoords != 0 || border ? texture.addressMode[i] : musaAddressModeClamp;
  }
  const musaChannelFormatDesc* desc = nullptr;
  switch (resource.resType) {
    case musaResourceTypeLinear:
      made->data = static_cast<char*>(resource.res.linear.devPtr);
      desc = &resource.res.linear.desc;
      made->bytes = element_bytes(*desc);
      made->width = made->bytes != 0 ? resource.res.linear.sizeInBytes / made->bytes : 0;
      made->height = 1;
      made->pitch = resource.res.linear.sizeInBytes;
      break;
    case musaResourceTypePitch2D:
      made->data = static_cast<char*>(resource.res.pitch2D.devPtr);
      desc = &resource.res.pitch2D.desc;
      made->bytes = element_bytes(*desc);
      made->width = resource.res.pitch2D.width;
      made->height = resource.res.pitch2D.height;
      made->pitch = resource.res.pitch2D.pitchInBytes;
      break;
    case musaResourceTypeArray: {
      const Array* array = find_array(resource.res.array.array);
      if (array == nullptr) {
        return musaErrorInvalidValue;
      }
      made->data = array->data;
      desc = &array->desc;
      made->bytes = array->element;
      made->width = array->width;
      made->height = array->rows;
      made->pitch = array->pitch;
      break;
    }
    default: return musaErrorNotSupported; // mipmapped arrays
  }
  made->desc = *desc;
  if (made->bytes == 0) {
    return musaErrorInvalidChannelDescriptor;
  }
  if (made->width == 0 || made->height == 0 || checked_product(made->width, made->bytes) > made->pitch) {
    return musaErrorInvalidValue;
  }
  // A texture component is read as it is, or an 8-bit or 16-bit integer is normalized.
  const bool normalized = texture.readMode == musaReadModeNormalizedFloat;
  if (normalized && (desc->f == musaChannelFormatKindFloat || desc->x == 32)) {
    return musaErrorInvalidNormSetting;
  }
  if (texture.filterMode == musaFilterModeLinear && !normalized && desc->f != musaChannelFormatKindFloat) {
    return musaErrorInvalidFilterSetting;
  }
  const PointerInfo info = classify(made->data);
  const size_t extent = box_span(1, 0, made->height, made->pitch, made->width * made->bytes);
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
      return musaErrorInvalidValue; // only arrays have views
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
