// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The processes of a device, for `mthreads-gmi` of the same SDK. MTML has no public function for them, so other programs
// must not use this one.
#pragma once

#include "mtml.h"

typedef struct {
  unsigned int pid;
  unsigned long long bytes; // of device memory; ULLONG_MAX if unknown
} MusaMtmlProcess;

MUSA_EXTERN_C_BEGIN
// `count`: capacity of `processes` at the call, number of processes at the return. Returns
// MTML_ERROR_INSUFFICIENT_SIZE, with the number, if there are more than the capacity.
MUSA_PUBLIC MtmlReturn
musaMtmlDeviceGetProcesses(const MtmlDevice* device, unsigned int* count, MusaMtmlProcess* processes);
MUSA_EXTERN_C_END
