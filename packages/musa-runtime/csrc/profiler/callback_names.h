// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <cstdint>
#include <string>

namespace musa_runtime {

// The name of the call with MUPTI's number `id`; "call <id>" for a number without a name in the SDK's headers. The table is
// generated from those headers when this library is compiled (codegen/generate_callback_names.py).
std::string callback_name(bool driver, uint32_t id);

} // namespace musa_runtime
