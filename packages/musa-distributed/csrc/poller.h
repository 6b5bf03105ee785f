// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Polls all process groups of this process on one thread. A group whose poll finds a failure reports it on a thread of its own,
// because that waits for other ranks.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "group.h"
#include "watchdog.h"

namespace c10d::mccl {

class Poller {
 public:
  static Poller& instance();

  // The thread exists while there are groups.
  void add(std::shared_ptr<Group> group);
  // Polls the group now.
  void kick(const Group& group);
  // Waits for a running poll of the group and for a report of its failure, and prevents further ones.
  void remove(const Group& group);

 private:
  struct Polled {
    std::shared_ptr<Group> group;
    std::chrono::steady_clock::time_point next{};
    bool kicked = false;
    std::unique_ptr<Watchdog> report{}; // of a failure; one call of its function
    bool reporting = false;
  };

  Watchdog::Interval poll();
  void poll(const std::shared_ptr<Polled>& polled);
  void start_report(const std::shared_ptr<Polled>& polled, std::function<void()> report);

  std::mutex mutex_; // guards the fields below, and those of the entries
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Polled>> groups_;
  std::shared_ptr<Polled> current_; // being polled
  std::thread::id thread_;
  std::unique_ptr<Watchdog> watchdog_;
};

} // namespace c10d::mccl
