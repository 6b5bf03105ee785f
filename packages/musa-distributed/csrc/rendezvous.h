// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Starts a communicator: the ranks meet in the store and connect, within the group's timeout.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "communicator.h"
#include "hosts.h"

namespace c10d::mccl {

struct Start {
  c10::intrusive_ptr<Store> store;
  std::string key;  // key prefix of the communicator in the store
  std::string description; // "[rank 1 of 4, group default_pg]", for messages
  size_t rank;      // of this process in the communicator
  std::vector<int> members; // rank in the group, for each rank of the communicator
  std::chrono::milliseconds timeout; // for each of the two steps
  c10::Device device;
  bool high_priority;
  std::function<void()> check; // called every second, on any thread; may raise an error

  int ranks() const { return static_cast<int>(members.size()); }
};

struct Met {
  mcclUniqueId id;
  Hosts hosts; // of the group's ranks
};

// The first step. Waits in the store until all ranks have arrived, and returns the id that rank 0 created. Keys that
// ranks of an earlier start left in the store are ignored. Raises DistBackendError after the timeout, with the ranks
// that did not arrive, or if rank 0 could not create an id.
Met meet(Store& store, const Start& start);

struct Started {
  std::shared_ptr<Communicator> comm;
  Hosts hosts;
};

// Both steps: meet(), then mcclCommInitRank. Raises DistBackendError with the hosts and addresses of the ranks if the
// store or mcclCommInitRank does not return within the timeout, or if either step fails on another rank. MCCL has no
// call that cancels mcclCommInitRank, so its thread is then abandoned; it aborts the communicator if it is created
// after all.
Started start_communicator(const Start& start);

} // namespace c10d::mccl
