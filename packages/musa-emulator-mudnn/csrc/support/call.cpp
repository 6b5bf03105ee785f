// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/call.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include <strings.h>

#include "support/alias.h"

// Exported by the emulator; not by SDKs of devices.
extern "C" __attribute__((weak)) int torch_musa_capability(const char* name);

namespace musa_emulator::dnn {
namespace {

using musa::dnn::HandleAccess;
using musa::dnn::TensorAccess;

enum class Level { Info, Warning, Error, Fatal };

Level log_level() {
  static const Level level = [] {
    constexpr std::pair<const char*, Level> kLevels[] = {
        {"INFO", Level::Info}, {"WARNING", Level::Warning}, {"ERROR", Level::Error}, {"FATAL", Level::Fatal}};
    const char* value = std::getenv("MUDNN_LOG_LEVEL");
    if (value == nullptr || *value == '\0') {
      return Level::Error;
    }
    for (const auto& [name, level] : kLevels) {
      if (strcasecmp(value, name) == 0) {
        return level;
      }
    }
    std::fprintf(
        stderr,
        "muDNN ERROR# MUDNN_LOG_LEVEL='%s' is invalid; expected INFO, WARNING, ERROR or FATAL, and ERROR is used.\n"
        "Fix: correct it, or unset MUDNN_LOG_LEVEL\n",
        value);
    return Level::Error;
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
    text += i > 0 ? "," : "";
    text += std::to_string(TensorAccess::dims(tensor)[i]);
  }
  text += ']';
  if (!TensorAccess::contiguous(tensor)) {
    text += " strides [";
    for (int i = 0; i < TensorAccess::ndim(tensor); ++i) {
      text += i > 0 ? "," : "";
      text += std::to_string(TensorAccess::strides(tensor)[i]);
    }
    text += ']';
  }
  return text;
}

std::string describe(std::initializer_list<const Tensor*> tensors) {
  std::string text;
  for (const Tensor* tensor : tensors) {
    text += text.empty() ? "" : ", ";
    text += describe(*tensor);
  }
  return text;
}

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

bool logs_calls() { return log_level() == Level::Info; }

void Checks::log() const { std::fprintf(stderr, "muDNN INFO %s(%s)\n", name_, describe(tensors_).c_str()); }

void Checks::refuse(Status status, const char* reason) {
  if (status_ != Status::SUCCESS) {
    return;
  }
  status_ = status;
  if (log_level() <= Level::Error) {
    std::fprintf(
        stderr, "muDNN ERROR# %s in %s(%s), Reason: %s\n", name_of(status), name_, describe(tensors_).c_str(), reason);
  }
}

bool Checks::accept_operands() {
  static const bool without_float64 = torch_musa_capability != nullptr && torch_musa_capability("lacks_float64") == 1;
  for (const Tensor* tensor : tensors_) {
    if (!TensorAccess::shaped(*tensor)) {
      continue; // absent: the operation decides whether this is allowed
    }
    if (!require(TensorAccess::elements(*tensor) > 0, Status::NOT_SUPPORTED, "an operand has no elements") ||
        !require(
            !without_float64 || TensorAccess::type(*tensor) != Tensor::Type::DOUBLE, Status::NOT_SUPPORTED,
            "an operand is DOUBLE, and the device does not compute with float64") ||
        !require(TensorAccess::address(*tensor) != nullptr, Status::INVALID_PARAMETER, "an operand has no address")) {
      return false;
    }
  }
  return true;
}

musa::dnn::MemoryHandler Checks::take(const musa::dnn::MemoryMaintainer& maintainer, size_t bytes, bool optional) {
  if (maintainer == nullptr) {
    require(optional, Status::INVALID_PARAMETER, "the operation requires a memory maintainer");
    return nullptr;
  }
  if (bytes == 0) {
    return nullptr;
  }
  musa::dnn::MemoryHandler memory = maintainer(bytes);
  if (!require(memory != nullptr, Status::ALLOC_FAILED, "the memory maintainer returned no workspace")) {
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

} // namespace musa_emulator::dnn
