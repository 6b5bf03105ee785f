// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "group.h"

namespace c10d::mccl {

// The text of the group's failure, for which it waits; "none" after a minute.
inline std::string failure_of(const Group& group) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (group.failure() == nullptr && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  try {
    group.check();
  } catch (const c10::DistBackendError& error) {
    return error.what_without_backtrace();
  }
  return "none";
}

} // namespace c10d::mccl
