// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

// Reads environment variables. Python code uses musa_runtime/switches.py.

#include <string>

#include <c10/musa/MUSAMacros.h>

namespace c10::musa {

// Returns the value of a variable; "" if it is not set.
C10_MUSA_API std::string environment_variable(const char* name);

// Returns whether a variable is "1", or `otherwise` if it is unset or empty. Raises ValueError, with the variable's name,
// for any other value than "0" and "1".
C10_MUSA_API bool environment_flag(const char* name, bool otherwise);

// Returns a text for a message, with bytes other than printable ASCII and newlines escaped as \xNN: Python decodes messages
// as UTF-8, and would otherwise raise UnicodeDecodeError in place of the error.
C10_MUSA_API std::string printable(const std::string& text);

} // namespace c10::musa
