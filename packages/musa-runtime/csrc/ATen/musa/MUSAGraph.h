// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/Tensor.h>
#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/musa/MUSAStream.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace musa_runtime {
class CallRecorder;
}

namespace at::musa {

// An id for a pool that several captures share, as capture_begin's argument.
C10_MUSA_API c10::MempoolId_t graph_pool_handle();

// Work of one device, captured once and launched as a whole. Captured are the SDK's operations on the streams of the
// capture and, through host_kernels/capture/captured_call.h, the calls of native kernels; MUSAGraph.cpp is beside that
// file. Nothing runs at capture; tensors made in it lie in the graph's pool, at addresses that stay the graph's as long
// as it lives.
//
// Not thread-safe. Life: capture_begin, capture_end, replay as often as wanted, reset (the destructor resets).
class C10_MUSA_API MUSAGraph {
 public:
  // keep_graph: the SDK's graph is kept after the capture, and instantiated at the first replay or by instantiate().
  explicit MUSAGraph(bool keep_graph = false);
  ~MUSAGraph();
  MUSAGraph(const MUSAGraph&) = delete;
  MUSAGraph& operator=(const MUSAGraph&) = delete;

  // Before the capture: random operators in it may use this generator. The device's default one is always known.
  void register_generator_state(const at::Generator& generator);

  // On the current device and stream, which must not be the default stream. Raises, and captures nothing, when the SDK
  // refuses.
  void capture_begin(
      c10::MempoolId_t pool = {0, 0},
      musaStreamCaptureMode capture_mode = musaStreamCaptureModeGlobal);
  // Raises the first reason why the capture failed; then the object is as new.
  void capture_end();
  void instantiate();
  // On the current stream of the graph's device.
  void replay();
  // Also ends a capture that is under way, and discards it. Replays that still run are not waited for; their memory
  // stays reserved until they are over.
  void reset();

  c10::MempoolId_t pool() const;
  // Keeps the SDK's graph for debug_dump.
  void enable_debug_mode();
  // In Graphviz's format.
  void debug_dump(const std::string& path);
  musaGraph_t raw_musa_graph() const;
  musaGraphExec_t raw_musa_graph_exec() const;

 private:
  // A generator, how far one replay advances it, and where in seeds_ its seed and offset lie.
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
  unsigned long long capture_id_ = 0; // by which the allocators' filters know the capture's streams
  c10::MempoolId_t mempool_id_{0, 0};
  c10::MempoolId_t host_pool_id_{0, 0};

  // What has been begun and must be ended, or is held and must be given back.
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
  std::unique_ptr<musa_runtime::CallRecorder> recorder_;
};

} // namespace at::musa
