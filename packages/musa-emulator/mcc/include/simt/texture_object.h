// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What a musaTextureObject_t is the address of.
#pragma once

#include <musa_texture_types.h>

namespace musa_simt {

struct TextureObject {
  const char* data;
  size_t width, height, pitch; // elements, rows, bytes
  size_t bytes;                // of an element
  musaResourceDesc resource;
  musaTextureDesc texture;
};

} // namespace musa_simt
