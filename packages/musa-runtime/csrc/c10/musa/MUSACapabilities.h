// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

namespace c10::musa {

/**
 * Abilities of the installed SDK and its devices that decide how torch_musa computes. The devices of a machine are of one
 * kind, so one answer holds for all. Asked once, at the first call, which needs a device.
 *
 * `musaDeviceProp::integrated` is none of them: an integrated GPU computes on the GPU like any other, and whether the host
 * can address its memory depends on the function that allocated it.
 */
struct Capabilities {
  /// The host can read and write memory that musaMalloc returned: the pointer's attributes have a host pointer.
  bool host_addressable = false;
  /// The devices compute on the host's processors, and the host can address their memory: torch's CPU kernels are
  /// preferred to kernels of the device, and a wait for a stream costs little. An SDK declares it by a function
  /// `extern "C" int torch_musa_capability(const char* name)` that returns 1 for "computes_on_host"; musa-emulator does.
  bool computes_on_host = false;
};

/// Raises if there is no device.
C10_MUSA_API const Capabilities& capabilities();

/// Capabilities::host_addressable; false if there is no device.
C10_MUSA_API bool host_addressable();

} // namespace c10::musa
