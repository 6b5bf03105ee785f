// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Enqueues work of the mathematical libraries on a stream.
#pragma once

#include <functional>
#include <utility>

#include "driver_types.h"

namespace musa_emulator::math {

// Enqueues `task` on the stream as a kernel: it is ordered, captured and replayed like one. It may call torch's CPU
// operators on device memory. An exception in it is printed on stderr and puts the device into a sticky error state.
// It may run later, on another thread and several times, so it must own copies of its arguments.
musaError_t enqueue(musaStream_t stream, const char* name, std::function<void()> task);

// As enqueue(), and waits for the stream. Fails during a capture, like any wait.
musaError_t enqueue_and_wait(musaStream_t stream, const char* name, std::function<void()> task);

} // namespace musa_emulator::math
