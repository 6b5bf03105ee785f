// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kept for sources that include it by name: the functions that say how many blocks fit are in musa_runtime.h.
#ifndef MUSA_OCCUPANCY_H
#define MUSA_OCCUPANCY_H
#include "musa_runtime.h"
#endif
