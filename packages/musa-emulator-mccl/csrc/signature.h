// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The properties of a call that all ranks must agree on.
#pragma once

#include <mccl.h>

#include <cstdint>
#include <string>

namespace musa_emulator::mccl {

enum class Kind : uint8_t { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, Send, Recv };

struct Signature {
  Kind kind;
  mcclDataType_t datatype;
  mcclRedOp_t op = mcclSum; // only for reductions
  int root = 0;             // or the peer
  size_t count = 0;         // as passed by the caller

  // Fields that a kind of call does not use have their defaults.
  bool operator==(const Signature&) const = default;

  // Required elements of a rank's send and receive buffers. Buffers that only the root uses have size 0 on other
  // ranks.
  struct Amounts {
    size_t sent, received;
  };
  Amounts amounts(int rank, int ranks) const;

  // The name of the entry point, e.g. "mcclAllReduce".
  const char* call() const;
  // E.g. "mcclAllReduce of 1024 float32, op 0".
  std::string describe() const;
};

const char* name_of(mcclDataType_t datatype);
// Returns 0 if `datatype` is not a data type.
size_t size_of(mcclDataType_t datatype);

} // namespace musa_emulator::mccl
