// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The state of an enqueued call, which the group's threads poll.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/musa/MUSAEvent.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "communicator.h"
#include "operation.h"
#include "recorder.h"

namespace c10d::mccl {

// Keeps tensors alive while a stream uses them that the allocator has not recorded for them.
class KeptTensors {
 public:
  void add(const std::vector<at::Tensor>& tensors);
  // Moves all tensors of `other` into this one.
  void take(KeptTensors& other);
  void clear();
  bool empty() const;

 private:
  mutable std::mutex mutex_;
  std::vector<at::Tensor> tensors_;
};

struct Launched : Progress {
  Launched(bool timing, c10::musa::MUSAStream stream, bool captured = false);

  OpType type = OpType::UNKNOWN;
  bool p2p = false;
  std::shared_ptr<const Operations> operations;
  // One, unless the call is a batch of sends and receives with several peers. All are on one device.
  std::vector<std::shared_ptr<Communicator>> comms;
  const c10::musa::MUSAStream stream;
  const bool captured; // captured into a graph, so the events cannot be queried
  const std::shared_ptr<c10::musa::MUSAEvent> start; // null unless timing is enabled
  const std::shared_ptr<c10::musa::MUSAEvent> end;
  std::atomic<bool> on_stream{false}; // the events have been recorded
  std::chrono::steady_clock::time_point issued = std::chrono::steady_clock::now();
  std::chrono::milliseconds timeout{};
  std::vector<std::optional<size_t>> records; // in the flight recorder
  bool start_traced = false;                  // whether the watchdog has written the start to the store
  KeptTensors kept;
  c10::intrusive_ptr<c10::ivalue::Future> result; // a WorkResult, as an integer

  // Sequence number: collectives and point-to-point calls are counted separately.
  uint64_t seq() const { return operations->seq; }
  c10::Device device() const { return comms.front()->device; }
  bool started() const override;
  bool finished() const override;
  std::chrono::milliseconds age() const;
  std::optional<float> milliseconds() const;

  // Only the first failure is kept; it is ignored if the call has already finished.
  void fail(std::exception_ptr failure);
  std::exception_ptr failure() const;

 private:
  mutable std::mutex mutex_; // guards failure_
  std::exception_ptr failure_;
};

} // namespace c10d::mccl
