// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// SIMD within words, dot products of bytes, bit fields, and threads that exit early, compared with their definitions.
#include <cstdlib>

#include "check.h"

struct Words {
  unsigned add4, sub4, subss4, addus2, cmpeq4, cmpne4, maxs4, minu2, avgu4, abs4, sads2, setgts4;
  int dot, dot_lo;
  unsigned dot_unsigned, field, inserted;
};

__global__ void words(const unsigned* a, const unsigned* b, Words* out) {
  const int i = threadIdx.x;
  const unsigned x = a[i], y = b[i];
  out[i] = {
      __vadd4(x, y),
      __vsub4(x, y),
      __vsubss4(x, y),
      __vaddus2(x, y),
      __vcmpeq4(x, y),
      __vcmpne4(x, y),
      __vmaxs4(x, y),
      __vminu2(x, y),
      __vavgu4(x, y),
      __vabs4(x),
      __vsads2(x, y),
      __vsetgts4(x, y),
      __dp4a(int(x), int(y), 7),
      __dp2a_lo(int(x), int(y), -7),
      __dp4a(x, y, 7u),
      __bfe_u32(x, i % 32, i % 35),
      __bfi_u32(x, y, i % 32, 5)};
}

template <class T>
T part(unsigned word, int i) {
  return static_cast<T>(word >> (8 * sizeof(T) * i));
}
template <class T, class F>
unsigned each(unsigned a, unsigned b, F f) {
  unsigned result = 0;
  for (int i = 0; i < int(4 / sizeof(T)); ++i) {
    const unsigned mask = sizeof(T) == 1 ? 0xffu : 0xffffu;
    result |= (static_cast<unsigned>(f(part<T>(a, i), part<T>(b, i))) & mask) << (8 * sizeof(T) * i);
  }
  return result;
}
int clamp(int value, int least, int most) { return value < least ? least : value > most ? most : value; }

__global__ void some_exit(int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) {
    sum = 0;
  }
  __syncthreads();
  if (threadIdx.x % 4 == 1) {
    __musa_exit();
  }
  atomicAdd(&sum, 1);
  __syncthreads(); // does not wait for threads that have exited
  out[threadIdx.x] = sum;
}

__global__ void shared_addresses(int* out) {
  __shared__ int cells[64];
  cells[threadIdx.x] = threadIdx.x;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&cells[threadIdx.x]));
  out[threadIdx.x] = *static_cast<int*>(__cvta_shared_to_generic(address));
}

int main() {
  const int n = 512;
  Array<unsigned> a(n), b(n);
  Array<Words> out(n);
  std::vector<unsigned> x(n), y(n);
  std::srand(1);
  for (int i = 0; i < n; ++i) {
    x[i] = std::rand() * 2654435761u;
    y[i] = i % 3 == 0 ? x[i] ^ (0xffu << (8 * (i % 4))) : std::rand() * 2246822519u;
  }
  a = x;
  b = y;
  words<<<1, n>>>((const unsigned*)(unsigned*)a, (const unsigned*)(unsigned*)b, (Words*)out);
  const std::vector<Words> got = out.host();
  for (int i = 0; i < n; ++i) {
    const unsigned p = x[i], q = y[i];
    EXPECT_EQ(got[i].add4, each<uint8_t>(p, q, [](int u, int v) { return u + v; }));
    EXPECT_EQ(got[i].sub4, each<uint8_t>(p, q, [](int u, int v) { return u - v; }));
    EXPECT_EQ(got[i].subss4, each<int8_t>(p, q, [](int u, int v) { return clamp(u - v, -128, 127); }));
    EXPECT_EQ(got[i].addus2, each<uint16_t>(p, q, [](int u, int v) { return clamp(u + v, 0, 65535); }));
    EXPECT_EQ(got[i].cmpeq4, each<uint8_t>(p, q, [](int u, int v) { return u == v ? 255 : 0; }));
    EXPECT_EQ(got[i].cmpne4, ~got[i].cmpeq4);
    EXPECT_EQ(got[i].maxs4, each<int8_t>(p, q, [](int u, int v) { return u > v ? u : v; }));
    EXPECT_EQ(got[i].minu2, each<uint16_t>(p, q, [](int u, int v) { return u < v ? u : v; }));
    EXPECT_EQ(got[i].avgu4, each<uint8_t>(p, q, [](int u, int v) { return (u + v + 1) / 2; }));
    EXPECT_EQ(got[i].abs4, each<int8_t>(p, q, [](int u, int) { return u < 0 ? -u : u; }));
    EXPECT_EQ(got[i].setgts4, each<int8_t>(p, q, [](int u, int v) { return u > v; }));
    int dot = 7, low = -7, differences = 0;
    unsigned positive = 7;
    for (int k = 0; k < 4; ++k) {
      dot += part<int8_t>(p, k) * part<int8_t>(q, k);
      positive += part<uint8_t>(p, k) * part<uint8_t>(q, k);
    }
    for (int k = 0; k < 2; ++k) {
      low += part<int16_t>(p, k) * part<int8_t>(q, k);
      differences += std::abs(part<int16_t>(p, k) - part<int16_t>(q, k));
    }
    EXPECT_EQ(got[i].dot, dot);
    EXPECT_EQ(got[i].dot_unsigned, positive);
    EXPECT_EQ(got[i].dot_lo, low);
    EXPECT_EQ(got[i].sads2, unsigned(differences));
    const unsigned long long ones = (1ull << (i % 35)) - 1;
    EXPECT_EQ(got[i].field, unsigned(p >> (i % 32) & ones));
    const unsigned mask = unsigned(31ull << (i % 32));
    EXPECT_EQ(got[i].inserted, (p & ~mask) | (unsigned(q << (i % 32)) & mask));
  }
  {
    Array<int> counts(96, -1);
    some_exit<<<1, 96>>>((int*)counts);
    EXPECT_EQ(counts[0], 72);
    EXPECT_EQ(counts[1], -1);
    EXPECT_EQ(counts[95], 72);
    shared_addresses<<<1, 64>>>((int*)counts);
    EXPECT_EQ(counts[63], 63);
  }
  return finish();
}
