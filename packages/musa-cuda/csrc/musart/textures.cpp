// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Descriptions of textures, whose structures have reserved members in CUDA.
#include "musart/support.h"

#include <cstring>

namespace musa_cuda::by_hand {
namespace {

// Descriptors of the SDK or of CUDA: the members of the two have the same names, and the types of resources the same numbers.
template <class To, class From>
To resource_of(const From& from) {
  To to{};
  to.resType = static_cast<decltype(to.resType)>(from.resType);
  switch (static_cast<musaResourceType>(from.resType)) {
    case musaResourceTypeArray:
      to.res.array.array = (decltype(to.res.array.array))from.res.array.array;
      break;
    case musaResourceTypeMipmappedArray:
      to.res.mipmap.mipmap = (decltype(to.res.mipmap.mipmap))from.res.mipmap.mipmap;
      break;
    case musaResourceTypeLinear:
      to.res.linear.devPtr = from.res.linear.devPtr;
      to.res.linear.desc = as<decltype(to.res.linear.desc)>(from.res.linear.desc);
      to.res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      break;
    case musaResourceTypePitch2D:
      to.res.pitch2D.devPtr = from.res.pitch2D.devPtr;
      to.res.pitch2D.desc = as<decltype(to.res.pitch2D.desc)>(from.res.pitch2D.desc);
      to.res.pitch2D.width = from.res.pitch2D.width;
      to.res.pitch2D.height = from.res.pitch2D.height;
      to.res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      break;
  }
  return to;
}

// As resource_of.
template <class To, class From>
To texture_of(const From& from) {
  To to{};
  static_assert(sizeof(to.addressMode) == sizeof(from.addressMode) && sizeof(to.borderColor) == sizeof(from.borderColor));
  std::memcpy(to.addressMode, from.addressMode, sizeof(to.addressMode));
  to.filterMode = static_cast<decltype(to.filterMode)>(from.filterMode);
  to.readMode = static_cast<decltype(to.readMode)>(from.readMode);
  to.sRGB = from.sRGB;
  std::memcpy(to.borderColor, from.borderColor, sizeof(to.borderColor));
  to.normalizedCoords = from.normalizedCoords;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<decltype(to.mipmapFilterMode)>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  return to;
}

} // namespace

musaError_t musaCreateTextureObject(
    musaTextureObject_t* object, const struct musaResourceDesc* resource, const struct musaTextureDesc* texture,
    const struct musaResourceViewDesc* view) {
  if (view != nullptr) { // the SDK's headers do not define it
    return musaErrorNotSupported;
  }
  if (resource == nullptr || texture == nullptr) {
    return musaErrorInvalidValue;
  }
  const cudaResourceDesc from = resource_of<cudaResourceDesc>(*resource);
  const cudaTextureDesc how = texture_of<cudaTextureDesc>(*texture);
  return status(cudaCreateTextureObject((cudaTextureObject_t*)object, &from, &how, nullptr));
}
musaError_t musaGetTextureObjectResourceDesc(struct musaResourceDesc* resource, musaTextureObject_t object) {
  cudaResourceDesc from{};
  const cudaError_t error = cudaGetTextureObjectResourceDesc(&from, object);
  if (error == cudaSuccess) {
    *resource = resource_of<musaResourceDesc>(from);
  }
  return status(error);
}
musaError_t musaGetTextureObjectTextureDesc(struct musaTextureDesc* texture, musaTextureObject_t object) {
  cudaTextureDesc from{};
  const cudaError_t error = cudaGetTextureObjectTextureDesc(&from, object);
  if (error == cudaSuccess) {
    *texture = texture_of<musaTextureDesc>(from);
  }
  return status(error);
}
musaError_t musaCreateSurfaceObject(musaSurfaceObject_t* object, const struct musaResourceDesc* resource) {
  if (resource == nullptr) {
    return musaErrorInvalidValue;
  }
  const cudaResourceDesc from = resource_of<cudaResourceDesc>(*resource);
  return status(cudaCreateSurfaceObject((cudaSurfaceObject_t*)object, &from));
}

} // namespace musa_cuda::by_hand
