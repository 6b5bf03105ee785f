// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "watchdog.h"

namespace {

// What a sanitizer must report: two threads count without a lock.
int count_carelessly() {
  int count = 0;
  c10d::mccl::Watchdog careless(
      "careless",
      [&count] {
        ++count;
        return std::chrono::milliseconds(0);
      },
      [](const std::exception_ptr&) {});
  for (int i = 0; i < 1000; ++i) {
    ++count;
    careless.kick();
  }
  return count > 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "known-bad") == 0) {
    return count_carelessly();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
