// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// An attribute list cannot follow __shared__.
__global__ void kernel(char* x) {
  __shared__ alignas(16) char room[64];
  room[threadIdx.x] = x[threadIdx.x];
  x[0] = room[0];
}
