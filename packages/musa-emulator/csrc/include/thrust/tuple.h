// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#if __has_include_next(<thrust/tuple.h>) // prefer muThrust's header
#pragma GCC system_header // -pedantic rejects #include_next elsewhere
#include_next <thrust/tuple.h>
#elif !defined(THRUST_TUPLE_H)
#define THRUST_TUPLE_H
#include <tuple>

namespace thrust {
using std::get;
using std::make_tuple;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;
} // namespace thrust
#endif
