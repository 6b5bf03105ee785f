// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Enqueues the calls of a process group on streams, ordered with the program's stream, adds them to the flight record,
// and has them polled until they finish.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "communicators.h"
#include "group.h"
#include "request.h"
#include "settings.h"
#include "work.h"

namespace c10d::mccl {

// Used by one thread at a time. The backend must outlive it.
class Launcher {
 public:
  // Reads only the properties of `backend` that torch sets after creating it: name, description, and bound device.
  Launcher(
      const Backend& backend, c10::intrusive_ptr<const Backend::Options> options, const Settings& settings,
      std::shared_ptr<Group> group, std::shared_ptr<Communicators> communicators);

  // Enqueues the call on its stream. While calls are being coalesced, stores it instead and returns nullptr.
  c10::intrusive_ptr<Work> run(Request request);

  // Starts storing calls. Drops the stored calls of a block that ended with an exception.
  void start_coalescing();
  // Enqueues the stored calls as one; returns nullptr if there are none.
  c10::intrusive_ptr<Work> end_coalescing();

  // Measures the duration of later calls. Thread-safe.
  void enable_timing() { timing_.store(true); }
  // Makes later calls raise an error.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }
  // Number of collectives enqueued, which is the sequence number of the last one.
  uint64_t collectives() const { return collectives_; }

 private:
  c10::intrusive_ptr<Work> issue(const std::vector<Request>& requests, bool coalesced);
  // The MCCL calls of some requests, all on one communicator.
  struct Route {
    std::shared_ptr<Communicator> comm;
    std::optional<int> peer; // of the pair; in the communicator of all ranks, each request has its own
    std::vector<const Request*> requests;
  };
  std::vector<Route> routes_of(const std::vector<Request>& requests, bool coalesced) const;
  std::shared_ptr<Launched> prepare(
      const std::vector<Request>& requests, bool coalesced, const std::vector<Route>& routes,
      const c10::musa::MUSAStream& current, bool capturing);
  void put_on_stream(
      const std::vector<Request>& requests, Launched& launched, const std::vector<Route>& routes,
      const std::vector<mcclComm_t>& handles, const c10::musa::MUSAStream& current) const;
  void record(std::shared_ptr<const Operation> operation, const std::shared_ptr<Launched>& launched);
  void keep_operands(const Request& request, Launched& launched) const;
  void refuse_nan(const Request& request) const;

  const Backend& backend_;
  const c10::intrusive_ptr<const Backend::Options> options_;
  const Settings settings_;
  const std::shared_ptr<Group> group_;
  const std::shared_ptr<Communicators> communicators_;
  std::atomic<bool> timing_;
  uint64_t collectives_ = 0, transfers_ = 0, operations_ = 0;
  bool named_ = false;
  std::atomic<bool> closed_{false};

  bool coalescing_ = false; // between start_coalescing and end_coalescing
  std::vector<Request> coalesced_;
};

} // namespace c10d::mccl
