// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A kernel throws, but devices have no exceptions.
__global__ void kernel(int* x) {
  if (x[0] < 0) {
    throw 1;
  }
}
