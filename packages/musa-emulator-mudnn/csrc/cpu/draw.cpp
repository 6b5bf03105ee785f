// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/draw.h"

#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <algorithm>
#include <cmath>

namespace musa_emulator::dnn {

void draw_keep_mask(at::Tensor& mask, double p, DrawnNumber seed_number, DrawnNumber offset_number) {
  bool* const keep = mask.mutable_data_ptr<bool>();
  const int64_t count = mask.numel();
  const auto value_of = [](const DrawnNumber& number) {
    return number.value + (number.on_device != nullptr ? *number.on_device : 0);
  };
  const uint64_t seed = value_of(seed_number);
  const uint64_t offset = value_of(offset_number);
  // Number of the 2^32 random values that keep an element. Exact at both ends: p = 0 keeps all elements, p = 1 none.
  const auto survivors = static_cast<uint64_t>(std::ldexp(1.0 - p, 32));
  at::parallel_for(0, (count + 3) / 4, /*grain_size=*/4096, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      at::philox_engine engine(seed, static_cast<uint64_t>(block), offset);
      const int64_t last = std::min(4 * block + 4, count);
      for (int64_t i = 4 * block; i < last; ++i) {
        keep[i] = engine() < survivors;
      }
    }
  });
}

} // namespace musa_emulator::dnn
