// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/call.h"

#include <c10/core/AutogradState.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "engine/memory.h"
#include "engine/state.h"
#include "support/alias.h"

namespace musa_emulator::dnn {
namespace {

using musa::dnn::HandleAccess;
using musa::dnn::TensorAccess;

constexpr unsigned char kWorkPattern = 0xA7;

enum class Level { Info, Warning, Error, Fatal };

Level log_level() {
  static const Level level = [] {
    const char* value = std::getenv("MUDNN_LOG_LEVEL");
    const std::string text = value != nullptr ? value : "ERROR";
    return text == "INFO" ? Level::Info
        : text == "WARNING" ? Level::Warning
        : text == "FATAL"   ? Level::Fatal
                            : Level::Error;
  }();
  return level;
}

std::string describe(const Tensor& tensor) {
  if (!TensorAccess::shaped(tensor)) {
    return "absent";
  }
  std::string text = c10::toString(scalar_type(TensorAccess::type(tensor)));
  text += '[';
  for (int i = 0; i < TensorAccess::ndim(tensor); ++i) {
    text += (i > 0 ? "," : "") + std::to_string(TensorAccess::dims(tensor)[i]);
  }
  text += ']';
  if (!TensorAccess::contiguous(tensor)) {
    text += " strides [";
    for (int i = 0; i < TensorAccess::ndim(tensor); ++i) {
      text += (i > 0 ? "," : "") + std::to_string(TensorAccess::strides(tensor)[i]);
    }
    text += ']';
  }
  return text;
}

std::string describe(std::initializer_list<const Tensor*> tensors) {
  std::string text;
  for (const Tensor* tensor : tensors) {
    text += (text.empty() ? "" : ", ") + describe(*tensor);
  }
  return text;
}

// Everything but the CPU's own kernels: the caller's modes, autograd, autocast, functionalisation.
const c10::DispatchKeySet above_backends =
    c10::DispatchKeySet(c10::DispatchKeySet::FULL)
        .remove(c10::DispatchKey::Dense)
        .remove(c10::DispatchKey::BackendSelect);

// How many threads compute decides how sums are cut, and so their last bits; the stream's thread may have another
// number than the one that called (torch gives new threads what was set last, anywhere).
class ThreadCount {
 public:
  // 0 keeps the number.
  explicit ThreadCount(int wanted) : before_(wanted != 0 ? at::get_num_threads() : 0), changed_(wanted != before_) {
    if (changed_) {
      at::set_num_threads(wanted);
    }
  }
  ~ThreadCount() {
    if (changed_) {
      at::set_num_threads(before_);
    }
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  const int before_;
  const bool changed_;
};

// As torch's guard, with one look at the thread's state instead of three.
class NoGrad {
 public:
  NoGrad() : state_(c10::AutogradState::get_tls_state()), before_(state_.get_grad_mode()) {
    state_.set_grad_mode(false);
  }
  ~NoGrad() { state_.set_grad_mode(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  c10::AutogradState& state_;
  const bool before_;
};

} // namespace

const char* name_of(Status status) {
  switch (status) {
    case Status::SUCCESS: return "SUCCESS";
    case Status::INVALID_PARAMETER: return "INVALID_PARAMETER";
    case Status::NOT_INITIALIZED: return "NOT_INITIALIZED";
    case Status::ALLOC_FAILED: return "ALLOC_FAILED";
    case Status::NOT_SUPPORTED: return "NOT_SUPPORTED";
    case Status::INTERNAL_ERROR: return "INTERNAL_ERROR";
    case Status::ARCH_MISMATCH: return "ARCH_MISMATCH";
    case Status::EXECUTION_FAILED: return "EXECUTION_FAILED";
  }
  return "?";
}

Status status_of(musaError_t error) {
  switch (error) {
    case musaSuccess: return Status::SUCCESS;
    case musaErrorInvalidValue: return Status::INVALID_PARAMETER;
    case musaErrorMemoryAllocation: return Status::ALLOC_FAILED;
    case musaErrorNotSupported: return Status::NOT_SUPPORTED;
    case musaErrorInitializationError: return Status::NOT_INITIALIZED;
    default: return Status::EXECUTION_FAILED;
  }
}

bool logs_calls() {
  return log_level() == Level::Info;
}

void Call::log() const {
  std::fprintf(stderr, "muDNN INFO %s(%s)\n", name_, describe(tensors_).c_str());
}

void Call::refuse(Status status, const char* reason) {
  if (status_ != Status::SUCCESS) {
    return;
  }
  status_ = status;
  if (log_level() <= Level::Error) {
    std::fprintf(
        stderr, "muDNN ERROR# %s in %s(%s), Reason: %s\n", name_of(status), name_, describe(tensors_).c_str(), reason);
  }
}

bool Call::accept_operands() {
  for (const Tensor* tensor : tensors_) {
    if (!TensorAccess::shaped(*tensor)) {
      continue; // absent: whether it may be is the operation's to say
    }
    if (!require(TensorAccess::elements(*tensor) > 0, Status::NOT_SUPPORTED, "an operand has no elements") ||
        !require(TensorAccess::address(*tensor) != nullptr, Status::INVALID_PARAMETER, "an operand has no address")) {
      return false;
    }
  }
  return true;
}

bool checks_workspace() {
  static const bool checks = [] {
    const char* wish = std::getenv("MUDNN_EMULATOR_CHECK_WORKSPACE");
    return wish != nullptr && *wish != '\0' ? std::strcmp(wish, "0") != 0 : engine().config.strict;
  }();
  return checks;
}

void WorkArea::poison() const {
  std::memset(data, kWorkPattern, bytes);
}

void WorkArea::check() const {
  // Each byte equals the next, and the first is the pattern.
  if (bytes == 0 || (data[0] == kWorkPattern && std::memcmp(data, data + 1, bytes - 1) == 0)) {
    return;
  }
  const auto other = std::find_if(data, data + bytes, [](unsigned char byte) { return byte != kWorkPattern; });
  throw std::runtime_error(
      "the workspace was written by somebody else while the operation ran, at byte " + std::to_string(other - data) +
      " of " + std::to_string(bytes) +
      ". Likely cause: the memory maintainer gave the memory away before the stream was done with it.");
}

musa::dnn::MemoryHandler Call::take(const musa::dnn::MemoryMaintainer& maintainer, size_t bytes, bool optional) {
  if (maintainer == nullptr) {
    require(optional, Status::INVALID_PARAMETER, "the operation needs a memory maintainer");
    return nullptr;
  }
  if (bytes == 0) {
    return nullptr;
  }
  musa::dnn::MemoryHandler memory = maintainer(bytes);
  if (!require(memory != nullptr, Status::ALLOC_FAILED, "the memory maintainer gave no workspace")) {
    return nullptr;
  }
  musaPointerAttributes attributes{};
  const bool known = musaPointerGetAttributes(&attributes, memory.get()) == musaSuccess;
  require(
      known && (attributes.type == musaMemoryTypeDevice || attributes.type == musaMemoryTypeManaged) &&
          attributes.device == HandleAccess::device(handle_),
      Status::INVALID_PARAMETER, "the workspace is not memory of the handle's device");
  return memory;
}

Stream* Call::stream_of_handle() {
  Stream* const stream = resolve_stream(HandleAccess::stream(handle_));
  require(stream != nullptr, Status::INVALID_PARAMETER, "the handle's stream is not alive");
  return stream;
}

Status Call::submit(Stream& stream, std::shared_ptr<Launch> task) {
  return status_of(musa_emulator::submit(stream, KernelOperation{std::move(task)}));
}

Status Call::wait() {
  Stream* const stream = resolve_stream(HandleAccess::stream(handle_));
  return stream != nullptr ? status_of(synchronize_stream(*stream)) : Status::INVALID_PARAMETER;
}

musaError_t Call::guarded(const char* name, int threads, void (*run)(void*), void* task) {
  const ThreadCount as_the_caller(threads);
  const AliasScope aliases;
  const c10::impl::ExcludeDispatchKeyGuard exclude(above_backends);
  const NoGrad no_grad;
  try {
    run(task);
    return musaSuccess;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muDNN ERROR# EXECUTION_FAILED in %s: %s\n", name, error.what());
    return musaErrorLaunchFailure;
  }
}

} // namespace musa_emulator::dnn
