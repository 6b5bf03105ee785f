// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The host API is in murand_host.h, with libmurand.so of the package musa-emulator-math; the device API is in
// murand_kernel.h.
#ifndef MUSA_MURAND_H
#define MUSA_MURAND_H
#include "musa_runtime.h"
#ifdef __has_include
#if __has_include("murand_host.h")
#include "murand_host.h"
#endif
#endif
#endif
