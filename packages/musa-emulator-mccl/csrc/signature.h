// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What ranks must agree on when they meet in a call.
#pragma once

#include <mccl.h>

#include <cstdint>
#include <string>

namespace musa_emulator::mccl {

enum class Kind : uint8_t { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, Send, Recv };

struct Signature {
  Kind kind;
  mcclDataType_t datatype;
  mcclRedOp_t op = mcclSum; // of reductions
  int root = 0;             // or the peer
  size_t count = 0;         // as the caller gave it

  // What a kind of call does not have is as above.
  bool operator==(const Signature&) const = default;

  // Elements that a rank's memory to send from and to receive in must have; a root's buffer is no matter on other ranks.
  struct Amounts {
    size_t sent, received;
  };
  Amounts amounts(int rank, int ranks) const;

  // The entry point, as in "mcclAllReduce".
  const char* call() const;
  // "mcclAllReduce of 1024 float32, op 0"
  std::string describe() const;
};

const char* name_of(mcclDataType_t datatype);
// 0 for what is no data type.
size_t size_of(mcclDataType_t datatype);

} // namespace musa_emulator::mccl
