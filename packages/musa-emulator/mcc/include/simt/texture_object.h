// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The object behind a musaTextureObject_t or musaSurfaceObject_t.
#pragma once

#include <musa_texture_types.h>

namespace musa_simt {

struct TextureObject {
  char* data;
  size_t width, height, depth; // elements; depth counts slices, layers or faces
  size_t pitch, slice;         // bytes between rows, between slices
  size_t bytes;                // bytes per element
  musaChannelFormatDesc desc;
  musaTextureAddressMode mode[3]; // wrap and mirror need normalized coordinates; otherwise clamped
  musaResourceDesc resource;
  musaTextureDesc texture;
};

} // namespace musa_simt
