// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <gtest/gtest.h>

#include <cstring>

int run_interprocess_child(int argc, char** argv);
int run_virtual_memory_child(int argc, char** argv);

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--interprocess-child") == 0) {
    return run_interprocess_child(argc, argv);
  }
  if (argc > 1 && std::strcmp(argv[1], "--virtual-memory-child") == 0) {
    return run_virtual_memory_child(argc, argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
