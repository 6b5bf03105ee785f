// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The communicators of a process group. Each is created by the first call that needs it.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "communicator.h"
#include "group.h"

namespace c10d::mccl {

// Thread-safe. A communicator outlives this object while a call on it is pending.
class Communicators {
 public:
  // The timeout in `options`, which the program may change, limits the creation of a communicator.
  Communicators(
      c10::intrusive_ptr<Store> store, std::shared_ptr<Group> group, c10::intrusive_ptr<const Backend::Options> options,
      bool high_priority);

  // Returns the communicator of all ranks. The first call creates it and blocks until all ranks have called this
  // function.
  std::shared_ptr<Communicator> of_all(const c10::Device& device);
  // Returns the communicator of this rank and `peer`, in which the lower rank is 0 and the other 1. Blocks likewise. A
  // rank that is its own peer has a communicator of one rank.
  std::shared_ptr<Communicator> of_pair(int peer, const c10::Device& device);
  // Whether the communicator of all ranks exists.
  bool has_all(const c10::Device& device) const;

  // The device of the first communicator, or nullopt if there is none.
  std::optional<c10::Device> device() const;
  // Number of communicators created by this rank. Ranks differ in it.
  size_t created() const;
  // Destroys all communicators in the order of creation, and makes of_all() and of_pair() raise an error. As in NCCL,
  // destroying one may block until all its ranks do the same. That cannot deadlock: creating a communicator blocks
  // likewise, so all ranks have a consistent order.
  void end();

 private:
  using Key = std::tuple<int, int, c10::DeviceIndex>; // the ranks of a pair, or -1 twice for all ranks; the device

  std::shared_ptr<Communicator> find_or_create(
      const Key& key, const std::string& name, const c10::Device& device, int rank, const std::vector<int>& members);
  std::shared_ptr<Communicator> find(const Key& key) const;

  const c10::intrusive_ptr<Store> store_;
  const std::shared_ptr<Group> group_;
  const c10::intrusive_ptr<const Backend::Options> options_;
  const bool high_priority_;

  std::mutex creation_; // held while a communicator is created, so that two threads do not create the same one
  mutable std::mutex mutex_; // guards the fields below; taken after creation_
  std::map<Key, std::shared_ptr<Communicator>> communicators_;
  std::vector<std::shared_ptr<Communicator>> in_order_; // in the order of creation
  size_t created_ = 0;
  bool ended_ = false;
};

} // namespace c10d::mccl
