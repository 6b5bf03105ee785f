// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "watchdog.h"

namespace {

// A race that a sanitizer must report: a watchdog and the thread that created it count without a lock.
// Nothing orders the two; the pause only ensures that the watchdog counts before this thread.
int count_carelessly() {
  int count = 0;
  c10d::mccl::Watchdog careless(
      "careless",
      [&count] {
        ++count;
        return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::hours(1));
      },
      [](const std::exception_ptr&) {});
  std::this_thread::sleep_for(std::chrono::seconds(2));
  ++count;
  return count > 0 ? 0 : 1;
}

} // namespace

int end_beside_users();

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "python-use") == 0) {
    return end_beside_users();
  }
  if (argc > 1 && std::strcmp(argv[1], "known-bad") == 0) {
    return count_carelessly();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
