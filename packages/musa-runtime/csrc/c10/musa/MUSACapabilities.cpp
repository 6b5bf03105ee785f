// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSACapabilities.h>

#include <c10/musa/MUSACompat.h>
#include <c10/musa/MUSAEnvironment.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAGraphsC10Utils.h>

// Exported by SDKs that declare capabilities.
extern "C" __attribute__((weak)) int torch_musa_capability(const char* name);

namespace c10::musa {
namespace {

bool declares(const char* name) { return torch_musa_capability != nullptr && torch_musa_capability(name) == 1; }

// Whether the attributes of a small allocation have a host pointer.
bool device_memory_has_host_pointer() {
  const MUSAStreamCaptureModeGuard relaxed; // another thread may be capturing
  void* memory = nullptr;
  C10_MUSA_CHECK(musaMalloc(&memory, 1));
  musaPointerAttributes attributes{};
  const musaError_t error = musaPointerGetAttributes(&attributes, memory);
  C10_MUSA_IGNORE_ERROR(musaFree(memory));
  if (error != musaSuccess) {
    throw_musa_error(error, "musaPointerGetAttributes(&attributes, memory)", __func__, __FILE__, __LINE__);
  }
  return attributes.hostPointer != nullptr;
}

} // namespace

bool host_addressable() {
  if (device_count() == 0) {
    return false;
  }
  static const bool addressable = device_memory_has_host_pointer();
  return addressable;
}

bool computes_on_host() { return declares("computes_on_host") && host_addressable(); }

bool computes_float64() {
  static const bool computes = environment_flag("TORCH_MUSA_FLOAT64", !declares("lacks_float64"));
  return computes;
}

} // namespace c10::musa
