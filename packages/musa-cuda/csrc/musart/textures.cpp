// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Descriptions of textures, whose structures have reserved members in CUDA.
#include "musart/support.h"

#include <cstring>

namespace musa_cuda::by_hand {
namespace {

// The members of the SDK's and of CUDA's descriptors have the same names, and the types of resources the same numbers.
cudaResourceDesc resource_of(const musaResourceDesc& from) {
  cudaResourceDesc to{};
  to.resType = static_cast<decltype(to.resType)>(from.resType);
  switch (from.resType) {
    case musaResourceTypeArray: to.res.array.array = (decltype(to.res.array.array))from.res.array.array; break;
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

cudaTextureDesc texture_of(const musaTextureDesc& from) {
  cudaTextureDesc to{};
  static_assert(
      sizeof(to.addressMode) == sizeof(from.addressMode) && sizeof(to.borderColor) == sizeof(from.borderColor));
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
  const cudaTextureDesc how = texture_of(*texture);
  return status(cudaCreateTextureObject((cudaTextureObject_t*)object, &from, &how, nullptr));
}

} // namespace musa_cuda::by_hand
