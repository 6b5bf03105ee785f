// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A kernel reads a variable in the host's memory.
int table[4] = {1, 2, 3, 4};

__global__ void kernel(int* x) { x[0] = table[x[0]]; }
