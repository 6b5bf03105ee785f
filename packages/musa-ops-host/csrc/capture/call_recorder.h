// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include "replay_scope.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/graph_capture.h>

#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

// The native calls of one graph: recorded during its capture, made by its host nodes in every replay.

namespace musa_ops_host {

// One call with everything resolved: CPU tensors over the memory of its arguments and results. They keep no memory alive;
// as in every graph, the pool does and, for memory from before the capture, the caller.
struct RecordedCall {
  explicit RecordedCall(c10::OperatorHandle handle) : op(std::move(handle)) {}

  c10::OperatorHandle op;
  torch::jit::Stack arguments;
  // The place of each tensor that the operator returns, lists flattened; undefined for one that is an argument.
  std::vector<at::Tensor> results;
  std::vector<OfferedMemory> offers;
  // A random operator's generator is seeded again in each replay, from the graph's seed and offset.
  struct Draw {
    at::Generator generator;
    const int64_t* seed;
    const int64_t* offset;
    uint64_t offset_in_graph;
  };
  std::optional<Draw> draw;

  void run(ReplayScope& scope, torch::jit::Stack& stack, std::vector<OfferedMemory>& offers) const;
};

// Locking: capture is single-threaded by torch's rules; the capturing threads use the recorder one after another. Replays
// only read calls. The atomics are shared between the replaying threads and the host.
class CallRecorder final : public musa_runtime::HostWork {
 public:
  explicit CallRecorder(c10::DeviceIndex device);
  ~CallRecorder() override;
  // That of the capture that the current stream belongs to, which must be one; made with its first call.
  static CallRecorder& of_current_capture();

  // Adds a call to the stream's work. Consecutive calls share one host node.
  void append(RecordedCall call, c10::musa::MUSAStream stream);

  c10::DeviceIndex device() const { return device_; }

  void append_finish(c10::musa::MUSAStream stream) override;
  void capture_ended() override { by_node_.clear(); }
  void replay_begins() override { replays_.fetch_add(1, std::memory_order_relaxed); }
  void replay_refused() override { replays_.fetch_sub(1, std::memory_order_relaxed); }
  bool in_flight() const override { return replays_.load(std::memory_order_acquire) != 0; }

 private:
  struct Sequence;
  static void run_sequence(void* sequence);
  static void finish_replay(void* recorder);

  c10::DeviceIndex device_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::unordered_map<musaGraphNode_t, Sequence*> by_node_; // while capturing
  std::atomic<int> replays_{0};
  std::atomic<bool> failed_{false}; // in the current replay: its remaining calls are skipped
};

} // namespace musa_ops_host
