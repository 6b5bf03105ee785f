// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The families of operators, one file each.
#pragma once

#include <musa_runtime/op_pack.h>

#include <array>
#include <utility>

namespace musa_ops_mudnn {

using musa_runtime::OpPack;

void declare_pointwise(OpPack& pack);
void declare_activation(OpPack& pack);
void declare_clamp(OpPack& pack);
void declare_fill(OpPack& pack);
void declare_arithmetic(OpPack& pack);
void declare_compare(OpPack& pack);
void declare_ternary(OpPack& pack);
void declare_reduce(OpPack& pack);
void declare_scan_sort(OpPack& pack);
void declare_matmul(OpPack& pack);
void declare_scaled_products(OpPack& pack);
void declare_quantized(OpPack& pack);
void declare_softmax(OpPack& pack);
void declare_loss(OpPack& pack);
void declare_convolution(OpPack& pack);
void declare_pooling(OpPack& pack);
void declare_resample(OpPack& pack);
void declare_norm(OpPack& pack);
void declare_dropout(OpPack& pack);
void declare_attention(OpPack& pack);
void declare_indexing(OpPack& pack);
void declare_shape(OpPack& pack);
void declare_fused(OpPack& pack);
void declare_fused_autocast(); // after the operators are declared

inline constexpr std::array families = {
    std::pair{"pointwise", &declare_pointwise},
    std::pair{"activation", &declare_activation},
    std::pair{"clamp", &declare_clamp},
    std::pair{"fill", &declare_fill},
    std::pair{"arithmetic", &declare_arithmetic},
    std::pair{"compare", &declare_compare},
    std::pair{"ternary", &declare_ternary},
    std::pair{"reduce", &declare_reduce},
    std::pair{"scan_sort", &declare_scan_sort},
    std::pair{"matmul", &declare_matmul},
    std::pair{"scaled_products", &declare_scaled_products},
    std::pair{"quantized", &declare_quantized},
    std::pair{"softmax", &declare_softmax},
    std::pair{"loss", &declare_loss},
    std::pair{"convolution", &declare_convolution},
    std::pair{"pooling", &declare_pooling},
    std::pair{"resample", &declare_resample},
    std::pair{"norm", &declare_norm},
    std::pair{"dropout", &declare_dropout},
    std::pair{"attention", &declare_attention},
    std::pair{"indexing", &declare_indexing},
    std::pair{"shape", &declare_shape},
    std::pair{"fused", &declare_fused},
};

} // namespace musa_ops_mudnn
