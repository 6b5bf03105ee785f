// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Starts and stops the collection of an attached profiler.
#ifndef MUSA_PROFILER_API_H
#define MUSA_PROFILER_API_H

#include "driver_types.h"

MUSA_EXTERN_C_BEGIN
MUSA_PUBLIC musaError_t musaProfilerStart(void);
MUSA_PUBLIC musaError_t musaProfilerStop(void);
MUSA_EXTERN_C_END

#endif
