// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Texture and surface objects: descriptions of memory, with their address as the handle. Kernels access them in
// simt/texture.h and simt/surface.h.
#include <cstdint>
#include <mutex>
#include <set>

#include "api_support.h"
#include "engine/array.h"
#include "engine/checked_size.h"
#include "engine/memory.h"
#include "simt/texture_object.h"

using namespace musa_emulator;
using musa_simt::TextureObject;

namespace {

// Guards the sets of live texture and surface objects.
std::mutex textures_mutex;
std::set<musaTextureObject_t>& textures() {
  static auto* alive = new std::set<musaTextureObject_t>;
  return *alive;
}

// The live surface objects.
std::set<musaSurfaceObject_t>& surfaces() {
  static auto* alive = new std::set<musaSurfaceObject_t>;
  return *alive;
}

void describe(const Array& array, TextureObject* made) {
  made->data = array.data;
  made->desc = array.desc;
  made->bytes = array.element;
  made->width = array.extent.width;
  made->height = array.rows;
  made->depth = array.slices;
  made->pitch = array.pitch;
  made->slice = array.slice();
}

musaError_t describe(const musaResourceDesc& resource, const musaTextureDesc& texture, TextureObject* made) {
  made->resource = resource;
  made->texture = texture;
  for (int i = 0; i < 3; ++i) {
    const bool border = texture.addressMode[i] == musaAddressModeBorder;
    made->mode[i] = texture.normalizedCoords != 0 || border ? texture.addressMode[i] : musaAddressModeClamp;
  }
  made->depth = 1;
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
      describe(*array, made);
      desc = &array->desc;
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
  const size_t extent = box_span(made->depth, made->slice, made->height, made->pitch, made->width * made->bytes);
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

musaError_t musaGetTextureObjectTextureDesc(musaTextureDesc* texture, musaTextureObject_t object) {
  return api<"musaGetTextureObjectTextureDesc">([&] {
    const std::lock_guard lock(textures_mutex);
    if (texture == nullptr || textures().count(object) == 0) {
      return musaErrorInvalidValue;
    }
    *texture = reinterpret_cast<TextureObject*>(object)->texture;
    return musaSuccess;
  });
}

musaError_t musaCreateSurfaceObject(musaSurfaceObject_t* object, const musaResourceDesc* resource) {
  return api<"musaCreateSurfaceObject">([&] {
    if (object == nullptr || resource == nullptr || resource->resType != musaResourceTypeArray) {
      return musaErrorInvalidValue;
    }
    const Array* array = find_array(resource->res.array.array);
    if (array == nullptr || (array->flags & kArraySurface) == 0) {
      return musaErrorInvalidValue; // the array was not allocated with the surface flag
    }
    auto* made = new TextureObject{};
    made->resource = *resource;
    describe(*array, made);
    const std::lock_guard lock(textures_mutex);
    *object = reinterpret_cast<musaSurfaceObject_t>(made);
    surfaces().insert(*object);
    return musaSuccess;
  });
}

musaError_t musaDestroySurfaceObject(musaSurfaceObject_t object) {
  return api<"musaDestroySurfaceObject", kReleases>([&] {
    if (object == 0) {
      return musaSuccess;
    }
    const std::lock_guard lock(textures_mutex);
    if (surfaces().erase(object) == 0) {
      return musaErrorInvalidValue;
    }
    delete reinterpret_cast<TextureObject*>(object);
    return musaSuccess;
  });
}
