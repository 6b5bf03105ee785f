// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The errors that make a device lost. Independent of the engine: musa-cuda's libraries use this file too.
#pragma once

#include "musa_runtime_api.h"

namespace musa_emulator {

// Whether every later call returns the error too, until the device is reset.
inline bool loses_device(int error) {
  switch (error) {
    case musaErrorECCUncorrectable:
    case musaErrorMtlinkUncorrectable:
    case musaErrorIllegalAddress:
    case musaErrorLaunchTimeout:
    case musaErrorAssert:
    case musaErrorHardwareStackError:
    case musaErrorIllegalInstruction:
    case musaErrorMisalignedAddress:
    case musaErrorInvalidAddressSpace:
    case musaErrorInvalidPc:
    case musaErrorLaunchFailure: return true;
    default: return false;
  }
}

} // namespace musa_emulator
