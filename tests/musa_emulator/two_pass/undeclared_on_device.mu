// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Only the device pass compiles code for the device.
__global__ void kernel(int* x) {
#ifdef __MUSA_ARCH__
  x[0] = undeclared;
#endif
}
