// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Data types as torch has them, and the reductions that Gloo lacks.
#pragma once

#include <ATen/core/Tensor.h>
#include <mccl.h>

#include <array>
#include <cstddef>
#include <memory>

#include "transport.h"

namespace musa_emulator::mccl {

// What mcclRedOpCreatePreMulSum was given.
struct PreMultiplier {
  mcclDataType_t datatype;
  const void* on_device = nullptr; // read when the collective runs
  std::array<std::byte, 8> value{};
};

// A reduction over ranks.
struct Reduction {
  mcclRedOp_t op = mcclSum; // mcclSum where there is a multiplier
  std::shared_ptr<const PreMultiplier> multiplier;
};

c10::ScalarType scalar_type(mcclDataType_t datatype);
// `count` elements of the caller's memory; as bytes where nothing is computed.
at::Tensor view(const void* memory, size_t count, mcclDataType_t datatype);
at::Tensor bytes_of(const void* memory, size_t count, mcclDataType_t datatype);

// In place. Without a transport there is one rank.
void all_reduce(const at::Tensor& values, const Reduction& reduction, Transport* transport, int ranks);
// Of `whole`, as many elements as in `part` for each rank; `part` may be within it.
void reduce_scatter(
    const at::Tensor& whole, const at::Tensor& part, const Reduction& reduction, Transport* transport, int ranks);
void reduce(const at::Tensor& values, const Reduction& reduction, int root, Transport* transport, int ranks);

} // namespace musa_emulator::mccl
