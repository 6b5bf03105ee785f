// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Prints the runtime version. Build systems parse the first quoted X.Y.Z of the output.
#include <cstdio>

#include "musa_runtime.h"
#include "options.h"

int main(int size, char** arguments) {
  const char* const text = "Prints the version of the MUSA runtime as JSON.";
  switch (parse_options(size, arguments, "musa_runtime_version", text)) {
    case Option::None:
    case Option::Version: break;
    case Option::Answered: return 0;
    case Option::Invalid: return 2;
  }
  int version = 0;
  if (const musaError_t status = musaRuntimeGetVersion(&version); status != musaSuccess) {
    std::fprintf(stderr, "musa_runtime_version: %s\n", musaGetErrorString(status));
    return 1;
  }
  std::printf(
      "musa_runtime:\n{\n  \"version\": \"%d.%d.%d\"\n}\n", version / 10000, version / 100 % 100, version % 100);
  return 0;
}
