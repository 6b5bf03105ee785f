// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared memory has no initializer.
__global__ void kernel(int* x) {
  __shared__ int count = 1;
  x[0] = count;
}
