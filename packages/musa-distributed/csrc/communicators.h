// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The communicators of a process group. Each is made when a call needs it first.
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

// Used by one thread at a time. A communicator outlives this object while a call on it is under way.
class Communicators {
 public:
  // The options' timeout, which the program may change, limits the start of a communicator.
  Communicators(
      c10::intrusive_ptr<Store> store, std::shared_ptr<Group> group, c10::intrusive_ptr<const Backend::Options> options,
      bool high_priority);

  // Of all ranks. Blocks until all of them have called it, unless it was made before.
  std::shared_ptr<Communicator> of_all(const c10::Device& device);
  // Of this rank and another one; its ranks are 0 and 1. Blocks likewise.
  std::shared_ptr<Communicator> of_pair(int peer, const c10::Device& device);

  // The device of one of them; nothing if there are none.
  std::optional<c10::Device> device() const;
  // How many were made.
  uint64_t made() const {
    return made_;
  }
  // Ends all of them in the order in which they were made. MCCL may let the end of one wait until all its ranks have come to it,
  // as NCCL does; the ranks made them in an order without circles, for that waited for all ranks too.
  void end();

 private:
  std::shared_ptr<Communicator> make(
      const std::string& key, const std::string& where, const c10::Device& device, int rank, std::vector<int> members);

  const c10::intrusive_ptr<Store> store_;
  const std::shared_ptr<Group> group_;
  const c10::intrusive_ptr<const Backend::Options> options_;
  const bool high_priority_;
  std::map<std::string, std::shared_ptr<Communicator>> communicators_;
  std::vector<std::shared_ptr<Communicator>> in_order_; // of their creation
  uint64_t made_ = 0;
};

} // namespace c10d::mccl
