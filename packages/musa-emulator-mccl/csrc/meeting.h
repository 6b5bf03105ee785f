// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Rendezvous of a communicator's ranks: a unique id contains the address of a store in the process that created it.
#pragma once

#include <mccl.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>

namespace musa_emulator::mccl {

// Starts a store and writes its address, on own_interface(), to the id. Throws std::exception.
void make_id(mcclUniqueId* id);

// Connection to the store of an id.
class Meeting {
 public:
  // Throws std::invalid_argument if the id is invalid, and std::runtime_error, with both hosts and the address, if
  // the store cannot be reached.
  explicit Meeting(const mcclUniqueId& id);
  // A rank's last use of the store. The process that started the store waits for all ranks and shuts it down.
  void leave(int ranks);

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }
  // A random word of the id, which is not in the store.
  const std::string& secret() const { return secret_; }

 private:
  std::string key_, secret_;
  c10::intrusive_ptr<c10d::Store> store_;
};

} // namespace musa_emulator::mccl
