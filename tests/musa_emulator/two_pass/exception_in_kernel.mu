// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// There are no exceptions on a device.
__global__ void kernel(int* x) {
  if (x[0] < 0) {
    throw 1;
  }
}
