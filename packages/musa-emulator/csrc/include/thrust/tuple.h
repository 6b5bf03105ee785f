// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#ifndef THRUST_TUPLE_H
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
