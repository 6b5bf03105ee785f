// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Conversion of data types to torch's, and the reductions that Gloo lacks.
#pragma once

#include <ATen/core/Tensor.h>
#include <mccl.h>

#include <array>
#include <cstddef>
#include <memory>

#include "transport.h"

namespace musa_emulator::mccl {

// The scalar of mcclRedOpCreatePreMulSum.
struct PreMultiplier {
  mcclDataType_t datatype;
  const void* on_device = nullptr; // read when the collective runs
  std::array<std::byte, 8> value{};
};

// A reduction over ranks.
struct Reduction {
  mcclRedOp_t op = mcclSum; // mcclSum if there is a multiplier
  std::shared_ptr<const PreMultiplier> multiplier;
};

c10::ScalarType scalar_type(mcclDataType_t datatype);
// A tensor over `count` elements of the caller's memory; a byte tensor if only moved.
at::Tensor view(const void* memory, size_t count, mcclDataType_t datatype);
at::Tensor bytes_of(const void* memory, size_t count, mcclDataType_t datatype);

// Reduces in place. `transport` is null if there is only one rank.
void all_reduce(const at::Tensor& values, const Reduction& reduction, Transport* transport, int ranks);
// Reduces `whole`, which has as many elements for each rank as `part`; `part` may be inside `whole`.
void reduce_scatter(
    const at::Tensor& whole, const at::Tensor& part, const Reduction& reduction, Transport* transport, int ranks);
void reduce(const at::Tensor& values, const Reduction& reduction, int root, Transport* transport, int ranks);

} // namespace musa_emulator::mccl
