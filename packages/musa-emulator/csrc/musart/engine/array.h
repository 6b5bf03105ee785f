// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arrays: device memory of elements with a format, which textures and surfaces read. The emulator stores them row by row.
#pragma once

#include <cstddef>

#include "driver_types.h"
#include "engine/export.h"
#include "musa_texture_types.h"

namespace musa_emulator {

// Flags of an array, with CUDA's values.
inline constexpr unsigned kArrayLayered = 1, kArraySurface = 2, kArrayCubemap = 4, kArrayGather = 8;

// What a musaArray_t points to. It does not change while the array is alive, so it needs no lock.
struct Array {
  char* data;
  musaChannelFormatDesc desc;
  musaExtent extent; // elements, as given: a height or depth of 0 means that the array has no such dimension
  unsigned flags;
  size_t element; // bytes
  size_t pitch;   // bytes of a row
  size_t rows;    // of a slice
  size_t slices;  // of depth, layers or faces

  size_t slice() const { return pitch * rows; }
  size_t bytes() const { return slice() * slices; }
};

// Bytes of an element of this format, or 0 for one that arrays and textures do not have.
MUSA_ENGINE size_t element_bytes(const musaChannelFormatDesc& desc);
MUSA_ENGINE musaError_t allocate_array(
    int device, const musaChannelFormatDesc& desc, musaExtent extent, unsigned flags, musaArray_t* array);
// Frees the memory as well. musaErrorInvalidResourceHandle for anything but a live array.
MUSA_ENGINE musaError_t free_array(musaArray_t array);
// nullptr for anything but a live array.
MUSA_ENGINE const Array* find_array(musaArray_const_t array);

} // namespace musa_emulator
