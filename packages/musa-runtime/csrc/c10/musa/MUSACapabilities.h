// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

// Abilities of the installed SDK and its devices that decide how torch_musa computes. The devices of a machine are of one kind,
// so one answer holds for all. The first two are found out at the first call with a device, and are false while there is none.
//
// `musaDeviceProp::integrated` is none of them: an integrated GPU computes on the GPU like any other, and whether the host
// can address its memory depends on the function that allocated it.

namespace c10::musa {

/// The host can read and write memory that musaMalloc returned: the attributes of an allocated byte have a host pointer. The
/// first call allocates it on the current device, so code asks only if the answer decides something.
C10_MUSA_API bool host_addressable();

/// The devices compute on the host's processors, and the host can address their memory: torch's CPU kernels are preferred to
/// kernels of the device, and a wait for a stream costs little. An SDK declares it by a function
/// `extern "C" int torch_musa_capability(const char* name)` that returns 1 for "computes_on_host"; musa-emulator does.
C10_MUSA_API bool computes_on_host();

/// The devices compute with float64 and complex128: TORCH_MUSA_FLOAT64, or if that is unset, true unless the SDK's
/// torch_musa_capability returns 1 for "lacks_float64". If not, kernels of the device get no call with such an operand.
C10_MUSA_API bool computes_float64();

} // namespace c10::musa
