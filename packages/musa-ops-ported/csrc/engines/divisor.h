// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Division of indices by divisors that are known on the host before the launch.
#pragma once

#include <c10/macros/Macros.h>

#include <cstdint>

namespace musa_ops_ported {

template <typename Index>
struct Divisor {
  Index number;

  explicit Divisor(int64_t number) : number(number) {}
  C10_HOST_DEVICE Index quotient(Index index) const { return index / number; }
};

// For indices below 2^31: a multiplication and a shift, because GPUs have no integer division instruction. With
// number <= 2^s and multiplier = 2^(31 + s) / number + e, 0 < e <= 1, the quotient is too large by less than index /
// 2^31 / number, which never reaches the next integer.
template <>
struct Divisor<int32_t> {
  uint32_t multiplier;
  int shift = 31;

  explicit Divisor(int64_t number) {
    while (int64_t{1} << (shift - 31) < number) {
      ++shift;
    }
    multiplier = static_cast<uint32_t>((uint64_t{1} << shift) / static_cast<uint64_t>(number) + 1);
  }
  C10_HOST_DEVICE int32_t quotient(int32_t index) const {
    return static_cast<int32_t>(static_cast<uint64_t>(static_cast<uint32_t>(index)) * multiplier >> shift);
  }
};

} // namespace musa_ops_ported
