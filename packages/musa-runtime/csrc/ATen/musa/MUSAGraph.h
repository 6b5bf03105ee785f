// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/Tensor.h>
#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSAStream.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace musa_runtime {
class GraphCapture;
}

namespace at::musa {

// Returns the id of a pool that several captures share, for capture_begin.
C10_MUSA_API c10::MempoolId_t graph_pool_handle();

// Work of one device, captured once and launched as a whole. The capture has the SDK's operations on the captured streams
// and the work that packs add through musa_runtime/graph_capture.h. Nothing runs at capture. Tensors created in it are allocated from the graph's pool, which reserves their addresses while
// the graph exists.
//
// Not thread-safe. Lifetime: capture_begin, capture_end, any number of replays, reset (called by the destructor).
class C10_MUSA_API MUSAGraph {
 public:
  // keep_graph: the SDK's graph is kept after the capture, and instantiated at the first replay or by instantiate().
  explicit MUSAGraph(bool keep_graph = false);
  ~MUSAGraph();
  MUSAGraph(const MUSAGraph&) = delete;
  MUSAGraph& operator=(const MUSAGraph&) = delete;

  // Called before the capture: lets random operators in it use this generator. The device's default one is always
  // registered.
  void register_generator_state(const at::Generator& generator);

  // Captures the current stream of the current device, which must not be the default stream. Raises, and captures nothing,
  // if the SDK refuses.
  void capture_begin(c10::MempoolId_t pool = {0, 0}, musaStreamCaptureMode capture_mode = musaStreamCaptureModeGlobal);
  // Raises the first reason for which the capture failed; the object can then be used for a new capture.
  void capture_end();
  void instantiate();
  // Launches on the current stream of the graph's device.
  void replay();
  // Also ends and discards a capture that is in progress. Does not wait for replays that still run; their memory stays
  // reserved until they finish.
  void reset();

  c10::MempoolId_t pool() const;
  // Keeps the SDK's graph for debug_dump.
  void enable_debug_mode();
  // In Graphviz's format.
  void debug_dump(const std::string& path);
  musaGraph_t raw_musa_graph() const;
  musaGraphExec_t raw_musa_graph_exec() const;

 private:
  // A generator, how far one replay advances it, and the index of its seed and offset in seeds_.
  struct CapturedGenerator {
    at::Generator generator;
    uint64_t increment = 0;
    bool capturing = false;
  };

  void begin(c10::MempoolId_t pool, musaStreamCaptureMode mode);
  musaError_t stop_capture(musaGraph_t* graph);
  void fill_seeds();
  void destroy_graph();
  void destroy_exec();

  const bool keep_graph_;
  bool debug_ = false;
  c10::DeviceIndex capture_dev_ = -1;
  std::optional<c10::musa::MUSAStream> capture_stream_;
  std::atomic<unsigned long long> capture_id_{0}; // for the allocators' filters, which any thread calls
  c10::MempoolId_t mempool_id_{0, 0};
  c10::MempoolId_t host_pool_id_{0, 0};

  // State that must be ended or released.
  bool capturing_ = false;
  bool marked_ = false;
  bool filling_pool_ = false;
  bool filling_host_pool_ = false;
  bool holds_pool_ = false;
  bool holds_host_pool_ = false;

  musaGraph_t graph_ = nullptr;
  musaGraphExec_t graph_exec_ = nullptr;
  std::vector<at::Generator> registered_generators_;
  std::vector<CapturedGenerator> generators_;
  at::Tensor seeds_; // int64 (generators, 2): seed and offset of the next replay
  std::unique_ptr<musa_runtime::GraphCapture> capture_;
};

} // namespace at::musa
