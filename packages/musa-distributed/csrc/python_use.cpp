// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "python_use.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>

namespace c10d::mccl {
namespace {

struct State {
  std::mutex mutex; // guards the fields below
  std::condition_variable changed;
  int users = 0;
  bool ended = false;
  pid_t process = getpid();
};

State& state() {
  static State& one = *new State; // never destroyed, because threads may use it until the process exits
  return one;
}

} // namespace

PythonUse::PythonUse() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  held_ = !all.ended;
  all.users += held_ ? 1 : 0;
}

PythonUse::~PythonUse() {
  if (held_) {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    --all.users;
    all.changed.notify_all();
  }
}

void end_python_use() {
  State& all = state();
  if (all.process != getpid()) {
    return; // the threads that were counted do not exist in a forked process
  }
  std::unique_lock lock(all.mutex);
  all.ended = true;
  all.changed.wait(lock, [&] { return all.users == 0; });
}

} // namespace c10d::mccl
