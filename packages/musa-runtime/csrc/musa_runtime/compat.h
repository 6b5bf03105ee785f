// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <torch/headeronly/version.h>

// Differences between torch minors live here and nowhere else in C++. Each wheel is built for one minor: the layouts of
// DeviceGuardImplInterface, DeviceStats and the allocators change between them.
#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 12
#error "musa-runtime needs the headers of torch 2.12 or later. Fix: pip install torch==2.13.0"
#endif

// The number that the runtime compares with that of a pack or a program before it runs any of its code. Raise it with every
// change of a public header that breaks a pack built before.
#define MUSA_RUNTIME_ABI 2
