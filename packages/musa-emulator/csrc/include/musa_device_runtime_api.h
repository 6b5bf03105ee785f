// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// For sources that include this header by name: kernels launch kernels with the host's syntax.
#ifndef MUSA_DEVICE_RUNTIME_API_H
#define MUSA_DEVICE_RUNTIME_API_H
#include "musa_runtime_api.h"
#endif
