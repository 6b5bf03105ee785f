// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// An alias of musa_fp16.h that programs include.
#ifndef MUSA_FP16_MTGPU_H
#define MUSA_FP16_MTGPU_H
#include "musa_fp16.h"
#endif
