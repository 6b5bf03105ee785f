// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A kernel uses a container of the host's library.
#include <vector>

__global__ void kernel(int* x) {
  std::vector<int> values(4);
  x[0] = values[0];
}
