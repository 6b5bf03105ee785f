// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kernels with one mistake each, selected by the name on the command line, and the same kernels without it.
#include <cassert>
#include <cstring>

#include "check.h"

__global__ void some_wait(int* out) {
  if (threadIdx.x < 7) {
    __syncthreads();
  } else {
    __syncwarp(); // other lanes of the same warp wait at __syncthreads
  }
  out[threadIdx.x] = 1;
}

__global__ void race(int* out, bool wait) {
  __shared__ int cell;
  if (threadIdx.x == 3) {
    cell = 7;
  }
  if (wait) {
    __syncthreads();
  }
  if (threadIdx.x == 40) {
    *out = cell;
  }
}

__global__ void overrun(int* out, int last) {
  __shared__ int cells[8];
  cells[threadIdx.x % 8] = 1;
  if (threadIdx.x == 0) {
    cells[last] = 3;
  }
  __syncthreads();
  out[0] = cells[0];
}

__global__ void too_much(int* out) {
  __shared__ int cells[400 << 10];
  cells[threadIdx.x] = 1;
  out[0] = cells[0];
}

__global__ void null(int* out) { *out = 1; }

__global__ void not_in_mask(int* out) { out[threadIdx.x] = __shfl_sync(0xfffffff0u, 1, 4); }

__global__ void runs_deep(int* out, int depth);
__device__ int deep(int depth) {
  volatile char frame[4096];
  frame[depth % 4096] = static_cast<char>(depth);
  return depth == 0 ? 0 : deep(depth - 1) + frame[depth % 4096];
}
__global__ void runs_deep(int* out, int depth) { out[threadIdx.x] = deep(depth); }

__global__ void asserts(int* out, int limit) {
  assert(static_cast<int>(threadIdx.x) < limit && "out of bounds");
  out[threadIdx.x] = 1;
}

__global__ void traps(int* out, int thread) {
  if (threadIdx.x == thread) {
    __trap();
  }
  out[threadIdx.x] = 1;
}

__global__ void traps_in_assembly(int* out, int thread) {
  if (threadIdx.x == 5) {
    asm("exit;"); // only this thread exits
  }
  if (threadIdx.x == thread) {
    asm volatile("trap;");
  }
  out[threadIdx.x] = 1;
}

// The order is unspecified.
__global__ void order(int* out, int* count) { out[atomicAdd(count, 1)] = threadIdx.x; }

int main(int, char** argv) {
  Array<int> out(1024);
  const auto is = [&](const char* name) { return std::strcmp(argv[1], name) == 0; };
  if (is("some-wait")) {
    some_wait<<<1, 64>>>(out);
  } else if (is("race")) {
    race<<<1, 64>>>(out, false);
  } else if (is("no-race")) {
    race<<<1, 64>>>(out, true);
  } else if (is("overrun")) {
    overrun<<<2, 16>>>(out, 9);
  } else if (is("no-overrun")) {
    overrun<<<2, 16>>>(out, 7);
  } else if (is("too-much")) {
    too_much<<<1, 16>>>(out);
  } else if (is("null")) {
    null<<<40, 16>>>(nullptr);
  } else if (is("not-in-mask")) {
    not_in_mask<<<1, 32>>>(out);
  } else if (is("deep")) {
    runs_deep<<<1, 4>>>(out, 1000);
  } else if (is("not-deep")) {
    runs_deep<<<1, 4>>>(out, 8);
  } else if (is("assert")) {
    asserts<<<2, 8>>>(out, 7);
  } else if (is("no-assert")) {
    asserts<<<2, 8>>>(out, 8);
  } else if (is("trap")) {
    traps<<<1, 8>>>(out, 3);
  } else if (is("no-trap")) {
    traps<<<1, 8>>>(out, 8);
  } else if (is("asm-trap")) {
    traps_in_assembly<<<1, 8>>>(out, 3);
  } else if (is("no-asm-trap")) {
    traps_in_assembly<<<1, 8>>>(out, 8);
    return out[4] == 1 && out[5] == 0 && musaDeviceSynchronize() == musaSuccess ? (std::puts("musaSuccess"), 0) : 3;
  } else if (is("order")) {
    Array<int> count(1);
    order<<<1, 6>>>(out, count);
    for (int i = 0; i < 6; ++i) {
      std::printf("%d ", out[i]);
    }
  }
  const musaError_t status = musaDeviceSynchronize();
  std::printf("%s\n", musaGetErrorName(status));
  return status == musaSuccess ? 0 : 2;
}
