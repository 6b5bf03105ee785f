// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <IActivityProfiler.h>

// libmusa_profiler.so is separate from libmusa_runtime.so because it needs the SDK's libmupti.so, which an SDK may lack. It
// exports one function with this name; the runtime loads it when a profiler first requests the device's activity.

namespace musa_runtime {

constexpr char kCreateProfiler[] = "musa_runtime_create_profiler";
using CreateProfiler = libkineto::IActivityProfiler* (*)();

} // namespace musa_runtime
