// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// torch's dispatch stubs, for calls of its CPU kernels that write to memory given. Include it before any other header
// of ATen.
#pragma once

// The header passes on one kernel for each instruction set that torch's library was built for. These are the official
// wheels'.
#if defined(__x86_64__)
#define HAVE_AVX2_CPU_DEFINITION
#define HAVE_AVX512_CPU_DEFINITION
#elif defined(__aarch64__)
#define HAVE_SVE_CPU_DEFINITION
#endif

#include <ATen/native/DispatchStub.h>
