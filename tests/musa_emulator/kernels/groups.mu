// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Cooperative groups: each thread's expected result is computed here by their definition.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void of_block(int* out) {
  __shared__ int cells[96];
  const cg::thread_block block = cg::this_thread_block();
  cells[block.thread_rank()] = block.thread_rank();
  block.sync();
  out[block.thread_rank()] = cells[block.size() - 1 - block.thread_rank()];
}

template <unsigned count>
__global__ void of_tiles(int* out) {
  const auto tile = cg::tiled_partition<count>(cg::this_thread_block());
  const int i = threadIdx.x, n = blockDim.x;
  if (tile.meta_group_rank() % 2 == 1) { // the other tiles take another path, or none
    out[i] = cg::reduce(tile, i, cg::plus<int>());
    out[n + i] = tile.shfl(i, 1 % count);
    out[2 * n + i] = tile.shfl_down(i, 1);
    out[3 * n + i] = tile.shfl_xor(i, count / 2);
    out[4 * n + i] = tile.ballot(tile.thread_rank() % 3 == 0);
    out[5 * n + i] = tile.any(i == 3) + 2 * tile.all(i != 3);
    tile.sync();
  }
}

__global__ void of_active(int* out) {
  const int i = threadIdx.x;
  if (i % 3 == 1) {
    const cg::coalesced_group active = cg::coalesced_threads();
    out[i] = active.size() * 10000 + active.thread_rank() * 100 + active.shfl(i % 32, active.size() - 1);
  }
}

__global__ void of_any_kind(int* out) {
  const cg::thread_group halves = cg::tiled_partition(cg::this_thread_block(), 16);
  cg::sync(halves);
  out[threadIdx.x] = halves.size() * 100 + halves.thread_rank();
}

__global__ void of_grid(int* cells, int* out) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned long long rank = grid.thread_rank(), size = grid.size();
  cells[rank] = rank + 1;
  grid.sync();
  out[rank] = cells[size - 1 - rank];
  grid.sync();
  cells[rank] = 0;
}

template <unsigned count>
void check_tiles() {
  const int n = 256;
  Array<int> out(6 * n, -7);
  of_tiles<count><<<1, n>>>((int*)out);
  const std::vector<int> got = out.host();
  for (int i = 0; i < n; ++i) {
    const int first = i / count * count, rank = i % count;
    if (i / count % 2 == 0) {
      EXPECT_EQ(got[i], -7);
      continue;
    }
    unsigned thirds = 0;
    for (unsigned k = 0; k < count; k += 3) {
      thirds |= 1u << k;
    }
    EXPECT_EQ(got[i], int(count * first + count * (count - 1) / 2));
    EXPECT_EQ(got[n + i], first + int(1 % count));
    EXPECT_EQ(got[2 * n + i], rank + 1 < int(count) ? i + 1 : i);
    EXPECT_EQ(got[3 * n + i], first + (rank ^ int(count / 2)));
    EXPECT_EQ(unsigned(got[4 * n + i]), thirds);
    EXPECT_EQ(got[5 * n + i], (first <= 3 && 3 < first + int(count)) ? 1 : 2);
  }
}

int main() {
  {
    Array<int> out(96);
    of_block<<<1, dim3(8, 4, 3)>>>((int*)out);
    EXPECT_EQ(out[0], 95);
    EXPECT_EQ(out[95], 0);
  }
  check_tiles<1>();
  check_tiles<2>();
  check_tiles<8>();
  check_tiles<16>();
  check_tiles<32>();
  {
    Array<int> out(96, -7);
    of_active<<<1, 96>>>((int*)out);
    EXPECT_EQ(out[0], -7);
    EXPECT_EQ(out[1], 110000 + 31);
    EXPECT_EQ(out[4], 110100 + 31);
    // Lanes 32 to 63: threads 34, 37, ..., 61, which are lanes 2 to 29 of their 32.
    EXPECT_EQ(out[34], 100000 + 29);
    EXPECT_EQ(out[61], 100900 + 29);
  }
  {
    Array<int> out(64);
    of_any_kind<<<1, 64>>>((int*)out);
    EXPECT_EQ(out[35], 1603);
  }
  {
    const int n = 8 * 64;
    Array<int> cells(n), out(n);
    int *a = cells, *b = out;
    void* arguments[] = {&a, &b};
    EXPECT_EQ(
        musaLaunchCooperativeKernel((const void*)of_grid, dim3(4, 2), dim3(32, 2), arguments, 0, nullptr), musaSuccess);
    EXPECT_EQ(out[0], n);
    EXPECT_EQ(out[n - 1], 1);
    EXPECT_EQ(cells[5], 0);
  }
  return finish();
}
