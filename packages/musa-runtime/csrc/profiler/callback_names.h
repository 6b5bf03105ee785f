// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <cstdint>
#include <string>

namespace musa_runtime {

// The name of the call that MUPTI numbers so; "call <id>" for a number that the SDK's headers do not name. The table is
// made from those headers when this library is compiled (codegen/generate_callback_names.py).
std::string callback_name(bool driver, uint32_t id);

} // namespace musa_runtime
