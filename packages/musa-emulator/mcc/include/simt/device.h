// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The kernel language beyond C++. mcc includes this header first in each .mu file.
#pragma once

// Markers that the preprocessor leaves for the rewriter; see lib/mcc/rewrite.py.
#define __shared__ __musa_shared__
#define __constant__ __musa_constant__
#define __global__ __musa_global__
#define __device__
#define __host__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))

#ifndef __clang__
// clang's hint. GCC's equivalent would evaluate the condition.
#define __builtin_assume(condition) static_cast<void>(0)
#endif

#include <musa_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simt/launch.h"
#include "simt/sync.h"
#include "simt/atomic.h"
#include "simt/math.h"
#include "simt/word.h"
#include "simt/texture.h"
#include "simt/texture_reference.h"
