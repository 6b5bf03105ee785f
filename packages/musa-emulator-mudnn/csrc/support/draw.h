// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The random masks of dropout and attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace musa_emulator::dnn {

// A number from the caller, or one in device memory that is read in stream order, so that each replay of a graph reads
// a new one.
struct DrawnNumber {
  uint64_t value;
  const uint64_t* on_device; // added to value unless nullptr
};

// Writes a contiguous BOOL tensor: true for elements that are kept. Element i uses number i % 4 of Philox block i / 4:
// a mask depends only on seed, offset and position, and masks with different offsets share no block.
void draw_keep_mask(at::Tensor& keep, double p, DrawnNumber seed, DrawnNumber offset);

} // namespace musa_emulator::dnn
