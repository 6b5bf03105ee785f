// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAMacros.h>
#include <musa_runtime/compat.h>

extern "C" C10_MUSA_API int musa_runtime_abi() { return MUSA_RUNTIME_ABI; }
