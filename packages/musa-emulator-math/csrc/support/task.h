// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Work of the mathematical libraries on a stream.
#pragma once

#include <functional>
#include <utility>

#include "driver_types.h"

namespace musa_emulator::math {

// Enqueues `task` on the stream as a kernel: it is ordered, captured and replayed like one. It may call torch's CPU
// operators on device memory; an exception in it loses the device, with a line on stderr. It runs later, perhaps on another
// thread, perhaps several times: it must own copies of what it needs.
musaError_t enqueue(musaStream_t stream, const char* name, std::function<void()> task);

// The same, and waits for the stream. Refused during a capture, like any wait.
musaError_t enqueue_and_wait(musaStream_t stream, const char* name, std::function<void()> task);

} // namespace musa_emulator::math
