// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A kernel must return void.
__global__ int kernel(int* x) { return x[0]; }
