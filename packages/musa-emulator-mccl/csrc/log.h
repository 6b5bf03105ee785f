// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What MCCL_DEBUG asks for: WARN (default) says why a call was refused or a communicator stopped, INFO tells every call.
#pragma once

#include <mccl.h>

#include <string>

namespace musa_emulator::mccl {

bool logs_calls();
// One line on stderr: process, then the text.
void info(const std::string& text);
void warn(const std::string& text);

// Says why, and gives the result back.
mcclResult_t refuse(mcclResult_t result, const char* call, const std::string& reason);

} // namespace musa_emulator::mccl
