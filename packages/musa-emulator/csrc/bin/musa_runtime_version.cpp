// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Prints the runtime version. Build systems parse the first quoted X.Y.Z of the output.
#include <cstdio>

#include "musa_runtime.h"

int main() {
  int version = 0;
  if (const musaError_t status = musaRuntimeGetVersion(&version); status != musaSuccess) {
    std::fprintf(stderr, "musa_runtime_version: %s\n", musaGetErrorString(status));
    return 1;
  }
  std::printf(
      "musa_runtime:\n{\n  \"version\": \"%d.%d.%d\"\n}\n", version / 10000, version / 100 % 100, version % 100);
  return 0;
}
