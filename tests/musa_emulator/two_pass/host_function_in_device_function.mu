// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A __device__ function calls a function of the host.
namespace {
int doubled(int x) { return 2 * x; }
__device__ int quadrupled(int x) { return doubled(doubled(x)); }
} // namespace

__global__ void kernel(int* x) { x[0] = quadrupled(x[0]); }
