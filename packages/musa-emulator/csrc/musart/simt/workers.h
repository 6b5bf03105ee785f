// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Threads that run blocks beside the one that drives the stream.
#pragma once

#include <cstddef>
#include <functional>

namespace musa_emulator::simt {

// Calls body() on the caller and on up to `helpers` others at the same time, and waits for those that have begun.
void run_beside(size_t helpers, const std::function<void()>& body);

} // namespace musa_emulator::simt
