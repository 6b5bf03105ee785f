// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// For sources that include this header by name: all functions are declared in mufft.h.
#ifndef MUSA_MUFFT_XT_H
#define MUSA_MUFFT_XT_H
#include "mufft.h"
#endif
