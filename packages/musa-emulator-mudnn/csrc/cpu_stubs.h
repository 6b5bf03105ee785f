// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// torch's dispatch stubs, to call its CPU kernels with an output in the caller's memory. Must be included before any
// other ATen header.
#pragma once

// The header forwards one kernel per instruction set that torch's library was built for. These are the sets of the
// official wheels.
#if defined(__x86_64__)
#define HAVE_AVX2_CPU_DEFINITION
#define HAVE_AVX512_CPU_DEFINITION
#elif defined(__aarch64__)
#define HAVE_SVE_CPU_DEFINITION
#endif

#include <ATen/native/DispatchStub.h>
