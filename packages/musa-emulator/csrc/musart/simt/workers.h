// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Threads that run blocks in addition to the thread that drives the stream.
#pragma once

#include <cstddef>
#include <functional>

namespace musa_emulator::simt {

// Calls body() concurrently on the caller and on up to `helpers` other threads, and waits for those that started.
void run_beside(size_t helpers, const std::function<void()>& body);

} // namespace musa_emulator::simt
