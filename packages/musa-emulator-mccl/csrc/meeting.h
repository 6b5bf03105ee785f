// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// How the ranks of a communicator find each other: a unique id says where the store of the process that made it listens.
#pragma once

#include <mccl.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>

namespace musa_emulator::mccl {

// Starts a store and writes the address at which it listens, that of own_interface(). Throws std::exception.
void make_id(mcclUniqueId* id);

// The store behind an id.
class Meeting {
 public:
  // Throws std::invalid_argument if the bytes are no id, and std::runtime_error, with both hosts and the address, if the store
  // cannot be reached.
  explicit Meeting(const mcclUniqueId& id);
  // The last thing that a rank does with the store; the process that started it waits for all and ends it.
  void leave(int ranks);

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

 private:
  std::string key_;
  c10::intrusive_ptr<c10d::Store> store_;
};

} // namespace musa_emulator::mccl
