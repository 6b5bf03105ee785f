// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Philox4x32-10 with torch's integer operators: 32-bit numbers in INT64 tensors. Slow (about 120 operators a mask),
// but bit-identical to the emulator's.
#include "support/draw.h"

#include <mudnn_backend/device.h>

#include <array>
#include <cmath>

namespace musa_emulator::dnn {
namespace {

constexpr int64_t kLow = 0xFFFFFFFF;

at::Tensor low(const at::Tensor& number) { return number.bitwise_and(kLow); }
at::Tensor high(const at::Tensor& number) { return number.bitwise_right_shift(32).bitwise_and(kLow); }

// Returns a 0-dim tensor. If the number is in device memory, the tensor aliases it, so it is read in stream order.
at::Tensor number_of(const DrawnNumber& number) {
  const at::Tensor value = at::full({}, static_cast<int64_t>(number.value), options_of(at::kLong));
  if (number.on_device == nullptr) {
    return value;
  }
  return value.add(at::from_blob(const_cast<uint64_t*>(number.on_device), {}, options_of(at::kLong)));
}

} // namespace

void draw_keep_mask(at::Tensor& keep, double p, DrawnNumber seed, DrawnNumber offset) {
  constexpr int64_t kMultiplier0 = 0xD2511F53;
  constexpr int64_t kMultiplier1 = 0xCD9E8D57;
  constexpr int64_t kWeyl0 = 0x9E3779B9;
  constexpr int64_t kWeyl1 = 0xBB67AE85;
  const int64_t count = keep.numel();
  const at::Tensor block = at::arange((count + 3) / 4, options_of(at::kLong));
  const at::Tensor key = number_of(seed);
  const at::Tensor start = number_of(offset);
  at::Tensor key0 = low(key);
  at::Tensor key1 = high(key);
  std::array<at::Tensor, 4> c = {low(start), high(start), low(block), high(block)};
  for (int round = 0; round < 10; ++round) {
    const at::Tensor product0 = c[0].mul(kMultiplier0); // below 2^64: same bits as the unsigned product
    const at::Tensor product1 = c[2].mul(kMultiplier1);
    c = {
        high(product1).bitwise_xor(c[1]).bitwise_xor(key0), low(product1),
        high(product0).bitwise_xor(c[3]).bitwise_xor(key1), low(product0)};
    key0 = low(key0.add(kWeyl0));
    key1 = low(key1.add(kWeyl1));
  }
  const auto survivors = static_cast<int64_t>(std::ldexp(1.0 - p, 32));
  const at::Tensor numbers =
      at::stack({c[0].expand_as(block), c[1].expand_as(block), c[2].expand_as(block), c[3].expand_as(block)}, 1);
  keep.copy_(numbers.lt(survivors).view(-1).narrow(0, 0, count).view(keep.sizes()));
}

} // namespace musa_emulator::dnn

// If this function is exported, the pack declines dropout: a provider with a kernel is faster and draws torch.cuda's
// numbers.
extern "C" [[gnu::visibility("default")]] bool mudnn_backend_composes_dropout() { return true; }
