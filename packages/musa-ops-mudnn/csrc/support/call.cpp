// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/call.h"

#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "support/settings.h"

namespace musa_ops_mudnn {
namespace {

// A handle and the values last set on it, so that muDNN is called only for a change. Only this file sets them.
struct KnownHandle {
  explicit KnownHandle(c10::DeviceIndex device) : handle(device), stream(handle.GetStream()) {}

  dnn::Handle handle;
  musaStream_t stream;
  std::optional<bool> allow_tf32; // empty: never set
};

// A thread's handles, one a device, made when first used. They end with the thread.
dnn::Handle& handle_of(c10::DeviceIndex device) {
  thread_local std::vector<std::unique_ptr<KnownHandle>> handles;
  const auto index = static_cast<size_t>(device);
  if (index >= handles.size() || handles[index] == nullptr) [[unlikely]] {
    handles.resize(std::max(index + 1, handles.size()));
    handles[index] = std::make_unique<KnownHandle>(device);
  }
  KnownHandle& known = *handles[index];
  const musaStream_t stream = c10::musa::getCurrentMUSAStream(device).stream();
  if (known.stream != stream) {
    check(known.handle.SetStream(stream), "Handle::SetStream");
    known.stream = stream;
  }
  if (known.allow_tf32 != settings().allow_tf32) [[unlikely]] {
    check(known.handle.SetAllowTF32(settings().allow_tf32), "Handle::SetAllowTF32");
    known.allow_tf32 = settings().allow_tf32;
  }
  return known.handle;
}

const char* name_of(dnn::Status status) {
  switch (status) {
    case dnn::Status::SUCCESS: return "SUCCESS";
    case dnn::Status::INVALID_PARAMETER: return "INVALID_PARAMETER";
    case dnn::Status::NOT_INITIALIZED: return "NOT_INITIALIZED";
    case dnn::Status::ALLOC_FAILED: return "ALLOC_FAILED";
    case dnn::Status::NOT_SUPPORTED: return "NOT_SUPPORTED";
    case dnn::Status::INTERNAL_ERROR: return "INTERNAL_ERROR";
    case dnn::Status::ARCH_MISMATCH: return "ARCH_MISMATCH";
    case dnn::Status::EXECUTION_FAILED: return "EXECUTION_FAILED";
  }
  return "of an unknown number";
}

const char* meaning_of(dnn::Status status) {
  switch (status) {
    case dnn::Status::ALLOC_FAILED:
      return "Likely cause: the device is out of memory. Free tensors, or use smaller batches; "
             "torch.musa.memory_summary() says what is in use.";
    case dnn::Status::EXECUTION_FAILED:
      return "Likely cause: an earlier kernel failed and the device is lost. Run again with MUSA_LAUNCH_BLOCKING=1 to see "
             "which, and restart the process.";
    case dnn::Status::NOT_INITIALIZED:
      return "Likely cause: the driver or the device is not available. `python -m torch_musa doctor` says more.";
    default:
      return "Likely causes: the muDNN installed is older than 3.0 or newer than this pack knows, or the pack offered an "
             "operand that muDNN does not take. MUDNN_LOG_LEVEL=INFO shows the call; TORCH_MUSA_OPS=<operator>=host,host-copy "
             "routes the operator around muDNN.";
  }
}

} // namespace

Settings& settings() {
  static Settings settings;
  return settings;
}

OnDevice::OnDevice(const at::Tensor& tensor)
    : guard_(tensor.device().index()), handle_(handle_of(tensor.device().index())) {}

dnn::MemoryMaintainer OnDevice::workspace() {
  return [](size_t bytes) {
    return dnn::MemoryHandler(
        bytes > 0 ? c10::musa::MUSACachingAllocator::raw_alloc(bytes) : nullptr,
        [](void* memory) { c10::musa::MUSACachingAllocator::raw_delete(memory); });
  };
}

void raise(dnn::Status status, const char* call, std::initializer_list<const at::Tensor*> tensors) {
  std::ostringstream text;
  text << "muDNN answered " << name_of(status) << " to " << call << '(';
  const char* separator = "";
  for (const at::Tensor* tensor : tensors) {
    text << separator;
    if (tensor->defined()) {
      text << tensor->scalar_type() << tensor->sizes();
    } else {
      text << "none";
    }
    separator = ", ";
  }
  text << ").\n" << meaning_of(status);
  // What failed within muDNN is told here, and not once more by the next kernel's launch.
  C10_MUSA_CLEAR_ERROR();
  TORCH_CHECK_WITH(OutOfMemoryError, status != dnn::Status::ALLOC_FAILED, text.str());
  TORCH_CHECK(false, text.str());
}

} // namespace musa_ops_mudnn
