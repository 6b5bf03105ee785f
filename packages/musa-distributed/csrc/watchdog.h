// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A thread that looks after something from time to time, and a thread that looks after such threads. They know nothing of
// tensors or devices.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace c10d::mccl {

class Watchdog {
 public:
  using Interval = std::chrono::milliseconds;

  // Calls `look` every interval, from a thread of its own, until it is stopped; `look` answers when it wants to be called next.
  // An exception of `look` ends the calls and goes to `on_error`.
  Watchdog(std::string name, std::function<Interval()> look, std::function<void(std::exception_ptr)> on_error);
  // Stops.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // There is something to look at: the next call is now.
  void kick();
  // Returns when no call is under way, and none comes any more. Not from `look`.
  void stop();

  const std::string& name() const {
    return name_;
  }
  // Since when `look` runs; nothing while the thread sleeps.
  std::optional<std::chrono::steady_clock::time_point> busy_since() const;

 private:
  void run();

  const std::string name_;
  const std::function<Interval()> look_;
  const std::function<void(std::exception_ptr)> on_error_;
  mutable std::mutex mutex_; // guards what follows
  std::condition_variable changed_;
  bool stopped_ = false, kicked_ = false;
  std::optional<std::chrono::steady_clock::time_point> busy_since_;
  std::thread thread_;
};

// Tells of watchdogs whose look lasts longer than the patience: the device or the network does not answer.
class HeartbeatMonitor {
 public:
  HeartbeatMonitor(std::chrono::milliseconds interval, std::function<void(const std::string& name)> on_stuck);
  ~HeartbeatMonitor() = default;

  void add(const Watchdog& watchdog, std::chrono::milliseconds patience);
  void remove(const Watchdog& watchdog);

 private:
  Watchdog::Interval look();

  struct Watched {
    const Watchdog* watchdog;
    std::chrono::milliseconds patience;
    bool told = false;
  };
  const std::chrono::milliseconds interval_;
  const std::function<void(const std::string& name)> on_stuck_;
  std::mutex mutex_; // guards watched_
  std::vector<Watched> watched_;
  Watchdog thread_; // last: it starts at once and ends first
};

} // namespace c10d::mccl
