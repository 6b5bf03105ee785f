// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

namespace c10::musa {

// Whether this thread has called set_device(), as torch.musa.set_device does. Device 0 is current on every thread from the
// beginning, so the current device alone does not show a choice. Guards do not count.
C10_MUSA_API bool device_is_chosen() noexcept;

} // namespace c10::musa
