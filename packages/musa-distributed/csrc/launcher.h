// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Puts the calls of a process group on streams: in order with the program's stream, recorded for the flight record, and
// watched until they end.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <memory>
#include <vector>

#include "communicators.h"
#include "group.h"
#include "request.h"
#include "settings.h"
#include "watchdog.h"
#include "work.h"

namespace c10d::mccl {

// Used by one thread at a time. The backend and the watchdog must outlive it.
class Launcher {
 public:
  // Of the backend, only what torch sets after it is made is read: its name, its description, the device that it is bound to.
  Launcher(
      const Backend& backend, c10::intrusive_ptr<const Backend::Options> options, const Settings& settings,
      std::shared_ptr<Group> group, std::shared_ptr<Communicators> communicators, Watchdog& watchdog);

  // Puts the call on its stream. While calls are coalesced, keeps it instead and returns null.
  c10::intrusive_ptr<Work> run(Request request);

  // Calls from here on are kept. Those of a block that ended with an exception are dropped.
  void start_coalescing();
  // Starts what was kept, as one; null if there is nothing.
  c10::intrusive_ptr<Work> end_coalescing();

  // From now on the duration of calls is measured. Called by any thread.
  void enable_timing() {
    timing_.store(true);
  }
  // From now on calls are refused.
  void close() {
    closed_ = true;
  }
  bool closed() const {
    return closed_;
  }
  // How many collectives have started, which is the sequence number of the last one.
  uint64_t collectives() const {
    return collectives_;
  }

 private:
  c10::intrusive_ptr<Work> issue(const std::vector<Request>& requests, bool coalesced);
  std::shared_ptr<Launched> prepare(
      const std::vector<Request>& requests, bool coalesced, std::shared_ptr<Communicator> comm,
      const c10::musa::MUSAStream& current, bool capturing);
  void put_on_stream(
      const std::vector<Request>& requests, Launched& launched, mcclComm_t handle, int peer,
      const c10::musa::MUSAStream& current) const;
  void record(std::shared_ptr<const Operation> operation, const std::shared_ptr<Launched>& launched);
  void keep_operands(const Request& request, Launched& launched) const;
  void refuse_nan(const Request& request) const;

  const Backend& backend_;
  const c10::intrusive_ptr<const Backend::Options> options_;
  const Settings settings_;
  const std::shared_ptr<Group> group_;
  const std::shared_ptr<Communicators> communicators_;
  Watchdog& watchdog_;
  std::atomic<bool> timing_;
  uint64_t collectives_ = 0, transfers_ = 0, operations_ = 0;
  bool named_ = false, closed_ = false;

  bool coalescing_ = false; // between start_coalescing and end_coalescing
  std::vector<Request> coalesced_;
};

} // namespace c10d::mccl
