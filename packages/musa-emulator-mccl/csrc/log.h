// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// MCCL_DEBUG: WARN (default) logs why a call was refused or a communicator stopped, INFO also logs every call.
#pragma once

#include <mccl.h>

#include <string>

namespace musa_emulator::mccl {

bool logs_calls();
// Prints one line on stderr: process id and text.
void info(const std::string& text);
void warn(const std::string& text);

// Logs the reason and returns `result`.
mcclResult_t refuse(mcclResult_t result, const char* call, const std::string& reason);

} // namespace musa_emulator::mccl
