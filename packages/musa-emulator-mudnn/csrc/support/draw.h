// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The masks that dropout and attention draw.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace musa_emulator::dnn {

// A number that the caller gave, or one in device memory, read when the stream comes to it: a graph's replays each find
// another.
struct DrawnNumber {
  uint64_t value;
  const uint64_t* on_device; // added to value unless null
};

// Into a contiguous BOOL tensor: true where an element survives. Element i is number i % 4 of Philox's block i / 4: a mask
// depends on seed, offset and position alone, and masks of different offsets share no block.
void draw_keep_mask(at::Tensor& keep, double p, DrawnNumber seed, DrawnNumber offset);

} // namespace musa_emulator::dnn
