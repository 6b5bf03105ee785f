// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arrays: device memory of formatted elements that textures read. Stored row by row.
#pragma once

#include <cstddef>

#include "musa_texture_types.h"

namespace musa_emulator {

// The object behind a musaArray_t. Constant while the array is alive, so it needs no lock.
struct Array {
  char* data;
  musaChannelFormatDesc desc;
  size_t width;   // elements
  size_t rows;    // 1 without a height
  size_t element; // bytes
  size_t pitch;   // bytes per row
};

// Returns the bytes of an element of this format, or 0 if arrays and textures do not support it.
size_t element_bytes(const musaChannelFormatDesc& desc);
// Returns nullptr if `array` is not a live array.
const Array* find_array(musaArray_const_t array);

} // namespace musa_emulator
