// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shuffles of all widths, votes, matches: each lane's expected result is computed here by their definition.
#include "check.h"

constexpr unsigned kAll = 0xffffffffu;

template <typename T>
__global__ void shuffles(T* out, int operand, int width) {
  const int i = threadIdx.x;
  const T value = static_cast<T>(i * 3 + 1);
  const int n = blockDim.x;
  out[i] = __shfl_sync(kAll, value, operand, width);
  out[n + i] = __shfl_up_sync(kAll, value, operand, width);
  out[2 * n + i] = __shfl_down_sync(kAll, value, operand, width);
  out[3 * n + i] = __shfl_xor_sync(kAll, value, operand, width);
}

template <typename T>
void check_shuffles(int warp, int operand, int width) {
  const int n = warp * 3;
  Array<T> device(4 * n);
  shuffles<<<1, n>>>((T*)device, operand, width);
  const std::vector<T> got = device.host();
  for (int i = 0; i < n; ++i) {
    const int lane = i % warp, base = i - lane, first = lane / width * width;
    const auto of = [&](int source) { return static_cast<T>((base + source) * 3 + 1); };
    const int down = lane + operand < first + width ? lane + operand : lane;
    const int up = lane - operand >= first ? lane - operand : lane;
    const int crossed = (lane ^ operand) < first + width ? lane ^ operand : lane;
    EXPECT_EQ(got[i], of(first + operand % width));
    EXPECT_EQ(got[n + i], of(up));
    EXPECT_EQ(got[2 * n + i], of(down));
    EXPECT_EQ(got[3 * n + i], of(crossed));
  }
}

struct Twelve {
  int a, b, c;
};

__global__ void structures(int* out) {
  const int i = threadIdx.x;
  const Twelve got = __shfl_xor_sync(kAll, Twelve{i, 10 * i, 100 * i}, 1);
  out[i] = got.a + got.b + got.c;
}

__global__ void votes(unsigned* out) {
  const int lane = threadIdx.x % warpSize;
  out[threadIdx.x * 4] = __ballot_sync(kAll, lane % 3 == 0);
  out[threadIdx.x * 4 + 1] = __any_sync(kAll, lane == 5);
  out[threadIdx.x * 4 + 2] = __all_sync(kAll, lane != 5);
  out[threadIdx.x * 4 + 3] = __match_any_sync(kAll, lane / 4);
}

// The two halves of a warp of 32 diverge.
__global__ void halves(int* out) {
  const int lane = threadIdx.x % 32;
  if (lane < 16) {
    int sum = lane;
    for (int d = 8; d > 0; d /= 2) {
      sum += __shfl_xor_sync(0x0000ffffu, sum, d);
    }
    out[threadIdx.x] = sum;
  } else {
    out[threadIdx.x] = __shfl_sync(0xffff0000u, lane * 2, 31);
  }
  __syncwarp();
}

// The vote does not wait for lanes that have exited.
__global__ void some_leave(unsigned* out, int n) {
  const int i = threadIdx.x;
  if (i % 32 >= n) {
    return;
  }
  out[i] = __ballot_sync(kAll, 1);
}

template <typename T>
__global__ void warp_sum(const T* x, T* out) {
  T sum = x[threadIdx.x];
  for (int d = warpSize / 2; d > 0; d /= 2) {
    sum += __shfl_down_sync(kAll, sum, d);
  }
  if (threadIdx.x % warpSize == 0) {
    out[threadIdx.x / warpSize] = sum;
  }
}

__global__ void alone(unsigned* out) {
  // The lanes that are active with this one; only those take part in the ballot.
  const unsigned active = __activemask();
  out[threadIdx.x] = __ballot_sync(active, 1) == active && (active >> (threadIdx.x % 32) & 1) != 0;
}

// Without an explicit mask, the active lanes are those that reach this point together.
__global__ void sum_of_active(int* out) {
  const unsigned mask = __activemask();
  int sum = 1;
  for (int d = 16; d > 0; d /= 2) {
    sum += __shfl_down_sync(mask, sum, d);
  }
  out[threadIdx.x] = sum;
}
__global__ void divergent_masks(unsigned* out) {
  const unsigned lane = threadIdx.x % 32;
  unsigned* mine = out + threadIdx.x * 4;
  mine[0] = __activemask();
  if (lane % 2 == 0) {
    mine[1] = __activemask();
  } else if (lane < 8) {
    mine[1] = __activemask();
  }
  mine[2] = __activemask();
  for (unsigned i = 0; i <= lane; ++i) { // fewer lanes in every iteration
    mine[3] = __ballot(1);
  }
}
__global__ void shuffles_without_masks(int* out) {
  const int i = threadIdx.x, n = blockDim.x;
  out[i] = __shfl(3 * i, 5);
  out[n + i] = __shfl_up(3 * i, 1u);
  out[2 * n + i] = __shfl_down(3 * i, 2u);
  out[3 * n + i] = __shfl_xor(3 * i, 4, 8);
  out[4 * n + i] = 2 * __any(i == 7) + __all(i < 7);
}
__global__ void lane_masks(unsigned* out) {
  unsigned* mine = out + threadIdx.x * 6;
  mine[0] = __get_laneid();
  mine[1] = __get_lanemask_eq();
  mine[2] = __get_lanemask_lt();
  mine[3] = __get_lanemask_le();
  mine[4] = __get_lanemask_gt();
  mine[5] = __get_lanemask_ge();
}

int main() {
  int device = 0, warp = 0;
  musaDeviceGetAttribute(&warp, musaDevAttrWarpSize, device);
  for (int width = warp; width >= 2; width /= 2) {
    for (int operand : {0, 1, 2, width / 2, width - 1}) {
      check_shuffles<int>(warp, operand, width);
    }
    check_shuffles<double>(warp, 1, width);
    check_shuffles<short>(warp, 1, width);
    check_shuffles<unsigned char>(warp, 1, width);
  }
  {
    Array<int> out(warp);
    structures<<<1, warp>>>(out);
    EXPECT_EQ(out[0], 111);
    EXPECT_EQ(out[warp - 1], 111 * (warp - 2));
  }
  {
    Array<unsigned> out(4 * warp);
    votes<<<1, warp>>>(out);
    unsigned thirds = 0;
    for (int i = 0; i < 32; ++i) {
      thirds |= unsigned(i % 3 == 0) << i;
    }
    EXPECT_EQ(out[0], thirds);
    EXPECT_EQ(out[1], 1u);
    EXPECT_EQ(out[2], 0u);
    EXPECT_EQ(out[3], 0xfu);
    EXPECT_EQ(out[4 * 30 + 3], 0xf0000000u);
  }
  if (warp == 32) {
    Array<int> out(64);
    halves<<<1, 64>>>(out);
    EXPECT_EQ(out[0], 120);
    EXPECT_EQ(out[47], 120);
    EXPECT_EQ(out[63], 62);
    Array<unsigned> ballots(64);
    some_leave<<<1, 64>>>(ballots, 20);
    EXPECT_EQ(ballots[0], (1u << 20) - 1);
    EXPECT_EQ(ballots[51], (1u << 20) - 1);
    EXPECT_EQ(ballots[20], 0u);
  }
  {
    Array<float> x(2 * warp, 0.25f), out(2);
    warp_sum<<<1, 2 * warp>>>((const float*)(float*)x, (float*)out);
    EXPECT_EQ(out[0], warp / 4.f);
    EXPECT_EQ(out[1], warp / 4.f);
  }
  {
    Array<unsigned> out(warp);
    alone<<<1, warp>>>(out);
    EXPECT_EQ(out[warp - 1], 1u);
  }
  {
    Array<int> out(2 * warp);
    sum_of_active<<<1, 2 * warp>>>(out);
    EXPECT_EQ(out[0], 32);
    EXPECT_EQ(out[warp], 32);
  }
  {
    Array<unsigned> out(4 * 2 * warp);
    divergent_masks<<<1, 2 * warp>>>(out);
    const std::vector<unsigned> got = out.host();
    for (int i = 0; i < 2 * warp; ++i) {
      const unsigned lane = i % 32;
      EXPECT_EQ(got[4 * i], kAll);
      EXPECT_EQ(got[4 * i + 1], lane % 2 == 0 ? 0x55555555u : lane < 8 ? 0xaau : 0u);
      EXPECT_EQ(got[4 * i + 2], kAll);
      EXPECT_EQ(got[4 * i + 3], kAll << lane);
    }
  }
  {
    Array<int> out(5 * warp);
    shuffles_without_masks<<<1, warp>>>(out);
    const std::vector<int> got = out.host();
    for (int i = 0; i < warp; ++i) {
      EXPECT_EQ(got[i], 15);
      EXPECT_EQ(got[warp + i], 3 * (i == 0 ? 0 : i - 1));
      EXPECT_EQ(got[2 * warp + i], 3 * (i + 2 < warp ? i + 2 : i));
      EXPECT_EQ(got[3 * warp + i], 3 * (i ^ 4));
      EXPECT_EQ(got[4 * warp + i], 2);
    }
  }
  {
    Array<unsigned> out(6 * warp);
    lane_masks<<<1, warp>>>(out);
    const std::vector<unsigned> got = out.host();
    for (int i = 0; i < warp; ++i) {
      const unsigned bit = 1u << (i % 32);
      EXPECT_EQ(got[6 * i], static_cast<unsigned>(i));
      EXPECT_EQ(got[6 * i + 1], bit);
      EXPECT_EQ(got[6 * i + 2], bit - 1);
      EXPECT_EQ(got[6 * i + 3], bit - 1 + bit);
      EXPECT_EQ(got[6 * i + 4], ~(bit - 1 + bit));
      EXPECT_EQ(got[6 * i + 5], ~(bit - 1));
    }
  }
  return finish();
}
