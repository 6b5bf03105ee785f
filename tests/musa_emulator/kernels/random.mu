// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The default generator of kernels is reproducible, differs by subsequence, and has the right distribution.
#include <murand_kernel.h>

#include <cmath>
#include <set>

#include "check.h"

constexpr int kThreads = 128, kEach = 512;

__global__ void draw(unsigned long long seed, unsigned* words, float* uniform, float* normal, double* wide) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  murandState_t state;
  murand_init(seed, thread, 0, &state);
  words[thread] = murand(&state);
  for (int i = 0; i < kEach; ++i) {
    uniform[thread * kEach + i] = murand_uniform(&state);
    normal[thread * kEach + i] = murand_normal(&state);
    wide[thread * kEach + i] = murand_normal_double(&state) * 0.5 + (murand_uniform_double(&state) - 0.5);
  }
}
__global__ void skip(unsigned long long seed, unsigned* words) {
  murandState_t ahead, stepped;
  murand_init(seed, 3, 5, &ahead);
  murand_init(seed, 3, 0, &stepped);
  for (int i = 0; i < 5; ++i) {
    murand(&stepped);
  }
  words[0] = murand(&ahead);
  words[1] = murand(&stepped);
}

template <class T>
void expect_moments(const std::vector<T>& values, double mean, double deviation) {
  double sum = 0, squares = 0;
  for (const T value : values) {
    sum += value;
    squares += double(value) * value;
  }
  const double found = sum / values.size();
  // Six standard errors of 65536 independent numbers; twice as much for the variance.
  EXPECT(std::fabs(found - mean) < 6 * deviation / 256);
  EXPECT(std::fabs(squares / values.size() - found * found - deviation * deviation) < 12 * deviation * deviation / 256);
}

int main() {
  const int n = kThreads * kEach;
  Array<unsigned> words(kThreads), again(kThreads), other(kThreads);
  Array<float> uniform(n), normal(n);
  Array<double> wide(n);
  draw<<<2, kThreads / 2>>>(7, (unsigned*)other, (float*)uniform, (float*)normal, (double*)wide);
  draw<<<2, kThreads / 2>>>(42, (unsigned*)again, (float*)uniform, (float*)normal, (double*)wide);
  draw<<<4, kThreads / 4>>>(42, (unsigned*)words, (float*)uniform, (float*)normal, (double*)wide);
  const std::vector<unsigned> first = words.host();
  EXPECT(first == again.host());
  EXPECT(first != other.host());
  EXPECT_EQ(std::set<unsigned>(first.begin(), first.end()).size(), first.size());
  for (const float value : uniform.host()) {
    if (!(value > 0 && value <= 1)) {
      EXPECT(false);
      break;
    }
  }
  expect_moments(uniform.host(), 0.5, std::sqrt(1.0 / 12));
  expect_moments(normal.host(), 0, 1);
  expect_moments(wide.host(), 0, std::sqrt(0.25 + 1.0 / 12));
  skip<<<1, 1>>>(42, (unsigned*)words);
  EXPECT_EQ(words[0], words[1]);
  return finish();
}
