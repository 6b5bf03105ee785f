// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Tests the finalization of an interpreter in a separate program, because it happens once per process.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "python_use.h"

using c10d::mccl::end_python_use;
using c10d::mccl::PythonUse;

int end_beside_users() {
  constexpr int kUsers = 4;
  std::atomic<int> within{0};
  std::latch begun{kUsers}, counted{1};
  std::vector<std::thread> users;
  for (int i = 0; i < kUsers; ++i) {
    users.emplace_back([&] {
      const PythonUse use;
      within += use ? 1 : 0;
      begun.count_down();
      counted.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      within -= use ? 1 : 0;
    });
  }
  begun.wait();
  const bool all_could = within == kUsers;
  counted.count_down();
  const pid_t child = fork();
  if (child == 0) {
    end_python_use(); // must not wait for threads of the parent process
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  end_python_use();
  const bool none_left = within == 0;
  const bool none_again = !PythonUse();
  end_python_use();
  for (auto& user : users) {
    user.join();
  }
  return all_could && status == 0 && none_left && none_again ? 0 : 1;
}
