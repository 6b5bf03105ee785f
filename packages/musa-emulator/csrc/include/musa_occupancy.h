// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// For sources that include this header by name: the occupancy functions are in musa_runtime.h.
#ifndef MUSA_OCCUPANCY_H
#define MUSA_OCCUPANCY_H
#include "musa_runtime.h"
#endif
