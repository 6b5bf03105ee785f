// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kept for sources that include it by name: all transforms are in mufft.h.
#ifndef MUSA_MUFFT_XT_H
#define MUSA_MUFFT_XT_H
#include "mufft.h"
#endif
