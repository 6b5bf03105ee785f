// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// How the ranks of a communicator find each other: a unique id says where the store of the process that made it listens.
#pragma once

#include <mccl.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>

namespace musa_emulator::mccl {

// Starts a store and writes where it listens. Throws std::exception.
void make_id(mcclUniqueId* id);

// The store behind an id; throws where the id is none or nobody listens.
class Meeting {
 public:
  explicit Meeting(const mcclUniqueId& id);
  // The last thing that a rank does with the store; the process that started it waits for all and ends it.
  void leave(int ranks);

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

 private:
  std::string key_;
  c10::intrusive_ptr<c10d::Store> store_;
};

// Text that is the same for processes that can see each other's files and numbers.
std::string host_identity();

// Of this machine, as other ranks reach it: of the interface MCCL_SOCKET_IFNAME, else the loopback's.
std::string own_address();

} // namespace musa_emulator::mccl
