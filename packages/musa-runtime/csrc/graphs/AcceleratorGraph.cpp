// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSACompat.h>

#if MUSA_TORCH_HAS_ACCELERATOR_GRAPH
#include <ATen/core/GraphImplInterface.h>
#include <ATen/musa/MUSAGraph.h>

namespace at::musa {
namespace {

// The implementation of torch.accelerator.Graph.
class AcceleratorGraph final : public at::GraphImplInterface {
 public:
  explicit AcceleratorGraph(const at::GraphImplArgs& arguments) : graph_(arguments.keep_graph) {}

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override {
    graph_.capture_begin(pool, sdk_mode(mode));
  }
  void capture_end() override { graph_.capture_end(); }
  void instantiate() override { graph_.instantiate(); }
  void replay() override { graph_.replay(); }
  void reset() override { graph_.reset(); }
  c10::MempoolId_t pool() const override { return graph_.pool(); }
  void enable_debug_mode() override { graph_.enable_debug_mode(); }
  void debug_dump(const std::string& path) override { graph_.debug_dump(path); }

 private:
  static musaStreamCaptureMode sdk_mode(at::GraphCaptureMode mode) {
    switch (mode) {
      case at::GraphCaptureMode::ThreadLocal: return musaStreamCaptureModeThreadLocal;
      case at::GraphCaptureMode::Relaxed: return musaStreamCaptureModeRelaxed;
      default: return musaStreamCaptureModeGlobal;
    }
  }

  MUSAGraph graph_;
};

} // namespace
} // namespace at::musa

namespace at {
// The key is the device type's name in capitals, as produced by torch.utils.rename_privateuse1_backend.
REGISTER_GRAPH_IMPL(MUSA, musa::AcceleratorGraph)
} // namespace at
#endif
