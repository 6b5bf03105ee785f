// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Runs ahead-of-time compiled models for musa; created by torch's package loader for device "musa".
#include <ATen/Context.h>
#include <c10/musa/MUSACapabilities.h>
#include <c10/musa/MUSADeviceArgument.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace torch::inductor {
namespace {

class MusaModelRunner : public AOTIModelContainerRunner {
 public:
  // The model's container uses CUDA's code path, mapped to musa's functions: torch/csrc/inductor/aoti_include/musa.h.
  MusaModelRunner(
      const std::string& library, size_t models, c10::DeviceIndex device, const std::string& kernels,
      bool single_threaded)
      : AOTIModelContainerRunner(library, models, "cuda:" + std::to_string(device), kernels, single_threaded),
        device_(device) {}

 protected:
  // `stream_handle`: the SDK's handle of the stream to run on; nullptr selects the current stream.
  std::vector<at::Tensor> run_impl(std::vector<AtenTensorHandle>& inputs, void* stream_handle) override {
    const c10::musa::MUSAGuard device_guard(device_);
    if (c10::musa::capturing()) {
      for (AtenTensorHandle input : inputs) { // run_impl owns the inputs, and the model would have taken them over
        aoti_torch_delete_tensor_object(input);
      }
      inputs.clear();
    }
    TORCH_CHECK(
        !c10::musa::capturing(),
        "A model that is compiled ahead of time cannot be captured into a MUSAGraph: its kernels are called from C++, where no "
        "graph records them.\n"
        "Fix: run the model outside of the capture, or capture the function that torch.compile makes of the module");
    const c10::musa::MUSAStream stream = stream_handle == nullptr
        ? c10::musa::getCurrentMUSAStream(device_)
        : c10::musa::getStreamFromExternal(static_cast<musaStream_t>(stream_handle), device_);
    std::optional<c10::musa::MUSAStreamGuard> stream_guard;
    if (stream_handle != nullptr) {
      stream_guard.emplace(stream);
    }
    return AOTIModelContainerRunner::run_impl(inputs, stream.stream());
  }

 private:
  c10::DeviceIndex device_;
};

// Returns the index in "musa:<index>", and the current device for "musa".
c10::DeviceIndex device_of(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) {
    return c10::musa::current_device();
  }
  const char* const end = text.data() + text.size();
  int64_t index = 0;
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, index);
  TORCH_CHECK(
      error == std::errc() && last == end, "Invalid device '", text, "' for a compiled model.\n",
      "Fix: use 'musa' or 'musa:<index>', with an index below torch.musa.device_count()");
  return c10::musa::to_device_index(index);
}

std::unique_ptr<AOTIModelContainerRunner> create_runner(
    const std::string& library, size_t models, const std::string& device_string, const std::string& kernels,
    const bool single_threaded) {
  at::globalContext().lazyInitDevice(c10::DeviceType::PrivateUse1);
  TORCH_CHECK(
      c10::musa::host_addressable(),
      "The package contains a model compiled for musa devices whose memory the host can address: its kernels are C++ "
      "on the host. The host cannot address this device's memory.\n"
      "Fix: run the exported program instead: torch.export.load(...).module(), or TorchScript in a C++ program");
  const c10::DeviceIndex device = device_of(device_string);
  // The container selects its device without restoring the previous one.
  const c10::musa::MUSAGuard guard(device);
  return std::make_unique<MusaModelRunner>(library, models, device, kernels, single_threaded);
}

RegisterAOTIModelRunner registration("musa", &create_runner);

} // namespace
} // namespace torch::inductor
