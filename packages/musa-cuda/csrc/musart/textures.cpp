// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Descriptions of textures, whose structures have reserved members in CUDA.
#include "musart/support.h"

#include <cstring>

namespace musa_cuda::by_hand {
namespace {

cudaChannelFormatDesc channels_of(const musaChannelFormatDesc& from) {
  return as<cudaChannelFormatDesc>(from);
}

cudaResourceDesc resource_of(const musaResourceDesc& from) {
  cudaResourceDesc to{};
  to.resType = static_cast<cudaResourceType>(from.resType);
  switch (from.resType) {
    case musaResourceTypeArray:
      to.res.array.array = (cudaArray_t)from.res.array.array;
      break;
    case musaResourceTypeMipmappedArray:
      to.res.mipmap.mipmap = (cudaMipmappedArray_t)from.res.mipmap.mipmap;
      break;
    case musaResourceTypeLinear:
      to.res.linear.devPtr = from.res.linear.devPtr;
      to.res.linear.desc = channels_of(from.res.linear.desc);
      to.res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      break;
    case musaResourceTypePitch2D:
      to.res.pitch2D.devPtr = from.res.pitch2D.devPtr;
      to.res.pitch2D.desc = channels_of(from.res.pitch2D.desc);
      to.res.pitch2D.width = from.res.pitch2D.width;
      to.res.pitch2D.height = from.res.pitch2D.height;
      to.res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      break;
  }
  return to;
}

musaResourceDesc resource_of(const cudaResourceDesc& from) {
  musaResourceDesc to{};
  to.resType = static_cast<musaResourceType>(from.resType);
  switch (to.resType) {
    case musaResourceTypeArray:
      to.res.array.array = (musaArray_t)from.res.array.array;
      break;
    case musaResourceTypeMipmappedArray:
      to.res.mipmap.mipmap = (musaMipmappedArray_t)from.res.mipmap.mipmap;
      break;
    case musaResourceTypeLinear:
      to.res.linear.devPtr = from.res.linear.devPtr;
      to.res.linear.desc = as<musaChannelFormatDesc>(from.res.linear.desc);
      to.res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      break;
    case musaResourceTypePitch2D:
      to.res.pitch2D.devPtr = from.res.pitch2D.devPtr;
      to.res.pitch2D.desc = as<musaChannelFormatDesc>(from.res.pitch2D.desc);
      to.res.pitch2D.width = from.res.pitch2D.width;
      to.res.pitch2D.height = from.res.pitch2D.height;
      to.res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      break;
  }
  return to;
}

// The members of the two, which have the same names.
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
  const cudaResourceDesc from = resource_of(*resource);
  const cudaTextureDesc how = texture_of<cudaTextureDesc>(*texture);
  return status(cudaCreateTextureObject((cudaTextureObject_t*)object, &from, &how, nullptr));
}
musaError_t musaGetTextureObjectResourceDesc(struct musaResourceDesc* resource, musaTextureObject_t object) {
  cudaResourceDesc from{};
  const cudaError_t error = cudaGetTextureObjectResourceDesc(&from, object);
  if (error == cudaSuccess) {
    *resource = resource_of(from);
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
  const cudaResourceDesc from = resource_of(*resource);
  return status(cudaCreateSurfaceObject((cudaSurfaceObject_t*)object, &from));
}

} // namespace musa_cuda::by_hand
