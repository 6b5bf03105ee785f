// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#ifndef MUSA_COOPERATIVE_GROUPS_REDUCE_H
#define MUSA_COOPERATIVE_GROUPS_REDUCE_H
#include "cooperative_groups.h"
#endif
