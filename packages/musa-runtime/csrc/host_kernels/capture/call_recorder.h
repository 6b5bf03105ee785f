// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/musa/MUSAStream.h>
#include <host_kernels/capture/replay_scope.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

// The native calls of one graph: recorded during its capture, made by its host nodes in every replay.

namespace musa_runtime {

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
// only read calls. The atomics are shared between the replaying threads and the host. Any thread may report a failure;
// failure_mutex_ guards failure_.
class C10_MUSA_API CallRecorder {
 public:
  explicit CallRecorder(c10::DeviceIndex device);
  ~CallRecorder();
  CallRecorder(const CallRecorder&) = delete;
  CallRecorder& operator=(const CallRecorder&) = delete;

  // Between these the recorder receives the native calls on the streams of the capture.
  void begin(unsigned long long capture_id);
  void end();

  // Adds a call to the stream's work. Consecutive calls share one host node.
  void append(RecordedCall call, c10::musa::MUSAStream stream);
  // Adds the last node of a graph with calls, which marks the end of a replay.
  void append_finish(c10::musa::MUSAStream stream);

  // Records the first reason for which the capture cannot become a graph; empty if it can.
  void fail(const std::string& reason);
  std::string failure() const;

  c10::DeviceIndex device() const { return device_; }
  size_t calls() const;

  // Called around the launch of a replay. The nodes may run long after it.
  void replay_begins();
  void replay_refused();
  bool in_flight() const { return replays_.load(std::memory_order_acquire) != 0; }

  // Destroys a recorder once its last replay is over.
  static void retire(std::unique_ptr<CallRecorder> recorder);
  // The recorder of the capture that the current stream belongs to; null if there is none.
  static CallRecorder* current();

 private:
  struct Sequence;
  static void run_sequence(void* sequence);
  static void finish_replay(void* recorder);

  c10::DeviceIndex device_;
  unsigned long long capture_id_ = 0;
  bool registered_ = false;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::unordered_map<musaGraphNode_t, Sequence*> by_node_; // while capturing
  std::atomic<int> replays_{0};
  std::atomic<bool> failed_{false}; // in the current replay: its remaining calls are skipped
};

} // namespace musa_runtime
