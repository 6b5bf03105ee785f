// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The communicators of a process group. Each is created by the first call that needs it.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "communicator.h"
#include "group.h"

namespace c10d::mccl {

// Used by one thread at a time. A communicator outlives this object while a call on it is pending.
class Communicators {
 public:
  // The timeout in `options`, which the program may change, limits the creation of a communicator.
  Communicators(
      c10::intrusive_ptr<Store> store, std::shared_ptr<Group> group, c10::intrusive_ptr<const Backend::Options> options,
      bool high_priority);

  // Returns the communicator of all ranks. The first call creates it and blocks until all ranks have called this
  // function.
  std::shared_ptr<Communicator> of_all(const c10::Device& device);
  // Returns the communicator of this rank and `peer`, in which the ranks are 0 and 1. Blocks likewise.
  std::shared_ptr<Communicator> of_pair(int peer, const c10::Device& device);

  // The device of one of the communicators, or nullopt if there is none.
  std::optional<c10::Device> device() const;
  // Number of communicators created.
  uint64_t made() const {
    return made_;
  }
  // Destroys all communicators in the order of creation. As in NCCL, destroying one may block until all its ranks do
  // the same. That cannot deadlock: creating a communicator blocks likewise, so all ranks have a consistent order.
  void end();

 private:
  std::shared_ptr<Communicator> make(
      const std::string& key, const std::string& where, const c10::Device& device, int rank, std::vector<int> members);

  const c10::intrusive_ptr<Store> store_;
  const std::shared_ptr<Group> group_;
  const c10::intrusive_ptr<const Backend::Options> options_;
  const bool high_priority_;
  std::map<std::string, std::shared_ptr<Communicator>> communicators_;
  std::vector<std::shared_ptr<Communicator>> in_order_; // in the order of creation
  uint64_t made_ = 0;
};

} // namespace c10d::mccl
