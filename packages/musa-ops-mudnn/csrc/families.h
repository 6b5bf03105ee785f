// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The families of operators, a file each.
#pragma once

#include <musa_runtime/op_registry.h>

#include <array>
#include <utility>

namespace musa_ops_mudnn {

using musa_runtime::OpPack;

void declare_pointwise(OpPack& pack);

inline constexpr std::array families = {
    std::pair{"pointwise", &declare_pointwise},
};

} // namespace musa_ops_mudnn
