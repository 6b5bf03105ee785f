// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Channel descriptors and texture objects. Mipmapped arrays are not emulated.
#ifndef MUSA_TEXTURE_TYPES_H
#define MUSA_TEXTURE_TYPES_H

#include "driver_types.h"

enum musaChannelFormatKind {
  musaChannelFormatKindSigned = 0,
  musaChannelFormatKindUnsigned = 1,
  musaChannelFormatKindFloat = 2,
  musaChannelFormatKindNone = 3
};
// Bits of each component; 0 if the component does not exist.
struct musaChannelFormatDesc {
  int x, y, z, w;
  enum musaChannelFormatKind f;
};

enum musaResourceType {
  musaResourceTypeArray = 0,
  musaResourceTypeMipmappedArray = 1,
  musaResourceTypeLinear = 2,
  musaResourceTypePitch2D = 3
};
struct musaResourceDesc {
  enum musaResourceType resType;
  union {
    struct {
      musaArray_t array;
    } array;
    struct {
      musaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void* devPtr;
      struct musaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      struct musaChannelFormatDesc desc;
      size_t width, height;  // elements
      size_t pitchInBytes;
    } pitch2D;
  } res;
};

enum musaTextureAddressMode {
  musaAddressModeWrap = 0,
  musaAddressModeClamp = 1,
  musaAddressModeMirror = 2,
  musaAddressModeBorder = 3
};
enum musaTextureFilterMode { musaFilterModePoint = 0, musaFilterModeLinear = 1 };
enum musaTextureReadMode { musaReadModeElementType = 0, musaReadModeNormalizedFloat = 1 };
struct musaTextureDesc {
  enum musaTextureAddressMode addressMode[3];
  enum musaTextureFilterMode filterMode;
  enum musaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned int maxAnisotropy;
  enum musaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
};
struct musaResourceViewDesc;

#endif
