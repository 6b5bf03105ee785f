// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#ifndef MUPTI_VERSION_H
#define MUPTI_VERSION_H

#include <stdint.h>

#include "mupti_result.h"

#define MUPTI_API_VERSION 18

MUSA_EXTERN_C_BEGIN
MUSA_PUBLIC MUptiResult muptiGetVersion(uint32_t* version);
MUSA_EXTERN_C_END

#endif
