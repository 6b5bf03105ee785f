// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What the language of kernels has beyond C++. mcc includes this first in each .mu file.
#pragma once

// Left by the preprocessor for the rewriter; see lib/mcc/rewrite.py.
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
// A hint of clang's. GCC's own would evaluate what it is told.
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
#include "simt/surface.h"
#include "simt/texture.h"
#include "simt/texture_reference.h"
