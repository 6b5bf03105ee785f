// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arrays: device memory of formatted elements that textures and surfaces access. Stored row by row.
#pragma once

#include <cstddef>

#include "driver_types.h"
#include "engine/export.h"
#include "musa_texture_types.h"

namespace musa_emulator {

// Flags of an array, with CUDA's values.
inline constexpr unsigned kArrayLayered = 1, kArraySurface = 2, kArrayCubemap = 4, kArrayGather = 8;

// The object behind a musaArray_t. Constant while the array is alive, so it needs no lock.
struct Array {
  char* data;
  musaChannelFormatDesc desc;
  musaExtent extent; // elements, as passed; a height or depth of 0 means that the dimension is absent
  unsigned flags;
  size_t element; // bytes
  size_t pitch;   // bytes per row
  size_t rows;    // per slice
  size_t slices;  // depth, layers or faces

  size_t slice() const { return pitch * rows; }
  size_t bytes() const { return slice() * slices; }
};

// Returns the bytes of an element of this format, or 0 if arrays and textures do not support it.
MUSA_ENGINE size_t element_bytes(const musaChannelFormatDesc& desc);
MUSA_ENGINE musaError_t allocate_array(
    int device, const musaChannelFormatDesc& desc, musaExtent extent, unsigned flags, musaArray_t* array);
// Also frees the memory. Returns musaErrorInvalidResourceHandle if `array` is not a live array.
MUSA_ENGINE musaError_t free_array(musaArray_t array);
// Returns nullptr if `array` is not a live array.
MUSA_ENGINE const Array* find_array(musaArray_const_t array);

} // namespace musa_emulator
