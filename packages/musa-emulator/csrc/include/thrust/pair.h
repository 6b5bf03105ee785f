// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#ifndef THRUST_PAIR_H
#define THRUST_PAIR_H
#include <utility>

namespace thrust {
using std::make_pair;
using std::pair;
} // namespace thrust
#endif
