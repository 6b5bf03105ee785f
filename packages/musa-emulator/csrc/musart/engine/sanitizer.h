// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Detects whether the process runs under the thread sanitizer: kernels may be compiled with it although this library
// is not.
#pragma once

extern "C" __attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);

namespace musa_emulator {

inline bool under_tsan() { return &__tsan_switch_to_fiber != nullptr; }

} // namespace musa_emulator
