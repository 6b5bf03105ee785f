// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

// Layer and batch norm of 16-bit inputs save mean and rstd in float32, as torch.cuda and torch's fake kernels do: rounded to 16
// bits, they make the gradients of short rows wrong. torch's CPU kernels save and read them in the dtype of the parameters.
//
// Each predicate returns whether torch's CPU kernel would keep the statistics of this call in 16 bits. Calls for which it does
// are declined by the provider "host" (the generated kernels name these predicates), and computed in float32 by compositions of
// the provider "runtime", which also rank before "host-copy". They have the names of their operators' C++ functions.

namespace musa_runtime::statistics_in_16_bits {

using at::Tensor;
using Optional = std::optional<Tensor>;

bool native_layer_norm(const Tensor&, at::IntArrayRef, const Optional&, const Optional&, double);
bool native_layer_norm_backward(
    const Tensor&, const Tensor&, at::IntArrayRef, const Tensor&, const Tensor&, const Optional&, const Optional&,
    std::array<bool, 3>);

bool native_batch_norm(
    const Tensor&, const Optional&, const Optional&, const Optional&, const Optional&, bool, double, double);
bool native_batch_norm_out(
    const Tensor&, const Optional&, const Optional&, const Optional&, const Optional&, bool, double, double, Tensor&,
    Tensor&, Tensor&);
bool _native_batch_norm_legit(const Tensor&, const Optional&, const Optional&, Tensor&, Tensor&, bool, double, double);
bool _native_batch_norm_legit_out(
    const Tensor&, const Optional&, const Optional&, Tensor&, Tensor&, bool, double, double, Tensor&, Tensor&, Tensor&);
bool _native_batch_norm_legit_no_stats(const Tensor&, const Optional&, const Optional&, bool, double, double);
bool _native_batch_norm_legit_no_stats_out(
    const Tensor&, const Optional&, const Optional&, bool, double, double, Tensor&, Tensor&, Tensor&);
bool _batch_norm_with_update(const Tensor&, const Optional&, const Optional&, Tensor&, Tensor&, double, double);
bool _batch_norm_with_update_out(
    const Tensor&, const Optional&, const Optional&, Tensor&, Tensor&, double, double, Tensor&, Tensor&, Tensor&,
    Tensor&);
bool native_batch_norm_backward(
    const Tensor&, const Tensor&, const Optional&, const Optional&, const Optional&, const Optional&, const Optional&,
    bool, double, std::array<bool, 3>);
bool batch_norm_backward(
    const Tensor&, const Tensor&, const Tensor&, const Optional&, const Optional&, const Optional&, const Optional&,
    bool, double, std::array<bool, 3>, const Tensor&);

} // namespace musa_runtime::statistics_in_16_bits
