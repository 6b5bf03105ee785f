// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kept for sources that include it by name: kernels launch kernels with the same words as the host.
#ifndef MUSA_DEVICE_RUNTIME_API_H
#define MUSA_DEVICE_RUNTIME_API_H
#include "musa_runtime_api.h"
#endif
