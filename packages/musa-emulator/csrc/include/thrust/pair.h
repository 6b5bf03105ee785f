// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#if __has_include_next(<thrust/pair.h>) // prefer muThrust's header
#pragma GCC system_header // -pedantic rejects #include_next elsewhere
#include_next <thrust/pair.h>
#elif !defined(THRUST_PAIR_H)
#define THRUST_PAIR_H
#include <utility>

namespace thrust {
using std::make_pair;
using std::pair;
} // namespace thrust
#endif
