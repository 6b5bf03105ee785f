// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The object behind a musaTextureObject_t.
#pragma once

#include <musa_texture_types.h>

namespace musa_simt {

struct TextureObject {
  char* data;
  size_t width, height; // elements
  size_t pitch;         // bytes between rows
  size_t bytes;         // bytes per element
  musaChannelFormatDesc desc;
  musaTextureAddressMode mode[2]; // wrap and mirror need normalized coordinates; otherwise clamped
  musaTextureDesc texture;
};

} // namespace musa_simt
