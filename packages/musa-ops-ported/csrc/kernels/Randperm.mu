// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Random permutation by sorting random keys. Keys have enough bits to make a tie unlikely (one in ten); tied elements
// are then shuffled.
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>

#include <cmath>
#include <limits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/random.muh"
#include "kernels/Randperm.h"

namespace musa_ops_ported {
namespace {

// Thread i shuffles the run of equal keys that begins at i, if there is one.
void shuffle_ties(const at::Tensor& keys, const at::Tensor& order, const std::optional<at::Generator>& generator) {
  const int64_t count = keys.numel();
  const at::PhiloxMusaState philox = reserve_numbers(count, generator);
  const int64_t* const key = keys.const_data_ptr<int64_t>();
  int64_t* const data = order.mutable_data_ptr<int64_t>();
  for_each(count - 1, [=] __device__(int64_t i) {
    if (key[i] != key[i + 1] || (i > 0 && key[i] == key[i - 1])) {
      return;
    }
    int64_t size = 1;
    while (i + size < count && key[i + size] == key[i]) {
      ++size;
    }
    RandomState state = random_state(philox, i);
    for (int64_t last = size - 1; last > 0; --last) {
      const int64_t other = murand(&state) % (last + 1);
      const int64_t kept = data[i + last];
      data[i + last] = data[i + other];
      data[i + other] = kept;
    }
  });
}

} // namespace

at::Tensor& randperm_generator_out(int64_t n, std::optional<at::Generator> generator, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  at::native::check_supported_max_int_with_precision(n, out);
  aten::resize_output(out, {n});
  if (n == 0) {
    return out;
  }
  const double count = static_cast<double>(n);
  const double threshold = std::log(0.9) * 12;
  const int bits = std::min(64, static_cast<int>(std::ceil(std::log2(count - (6 * count * count + 1) / threshold))));
  const auto options = at::TensorOptions().device(out.device());
  at::Tensor keys = aten::empty({n}, options.dtype(bits <= 32 ? at::kInt : at::kLong));
  if (bits <= 32) {
    keys.random_(std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), generator);
  } else {
    keys.random_(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), generator);
  }
  if (bits < 64) {
    keys = keys.to(at::kLong).bitwise_and(at::Scalar(static_cast<int64_t>((uint64_t{1} << bits) - 1)));
  }
  const auto [sorted, order] = aten::sort(keys, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  if (n > 1) {
    shuffle_ties(sorted, order, generator);
  }
  out.copy_(order.reshape(out.sizes()));
  return out;
}

} // namespace musa_ops_ported
