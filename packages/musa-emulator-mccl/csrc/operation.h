// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Launches of a stream: a collective, or all sends and receives of a group.
#pragma once

#include <memory>
#include <vector>

#include "communicator.h"
#include "engine/operation.h"
#include "signature.h"

namespace musa_emulator::mccl {

struct Transfer {
  Signature signature;
  void* memory;
};

std::shared_ptr<Launch> make_collective(
    std::shared_ptr<Communicator> comm, const Signature& signature, Reduction reduction, const void* send, void* recv);
std::shared_ptr<Launch> make_transfers(std::shared_ptr<Communicator> comm, std::vector<Transfer> transfers);

} // namespace musa_emulator::mccl
