// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A kernel calls a function of the host.
void log_value(int);

__global__ void kernel(int* x) { log_value(x[0]); }
