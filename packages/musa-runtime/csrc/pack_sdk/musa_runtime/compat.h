// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSACompat.h>

// The ABI number that the runtime compares with that of a pack or a program before it runs any of its code. Raise it with
// every change of a public header that breaks packs built before.
#define MUSA_RUNTIME_ABI 3
