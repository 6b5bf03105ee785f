// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

namespace musa_ops_ported {

inline constexpr int kVector = 4; // elements that a thread loads at once

template <typename T>
struct alignas(sizeof(T) * kVector) Vector {
  T values[kVector];
};

} // namespace musa_ops_ported
