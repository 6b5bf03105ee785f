// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Watchdog polls a function periodically, on a thread. HeartbeatMonitor detects watchdogs that hang. Neither depends on
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

  // Calls `poll` periodically from a new thread until stop(); `poll` returns the time until the next call. If `poll`
  // throws, the calls end, and the exception is passed to `on_error`.
  Watchdog(std::string name, std::function<Interval()> poll, std::function<void(std::exception_ptr)> on_error);
  // Calls stop().
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Wakes the thread to call `poll` now.
  void kick();
  // Waits for a running call of `poll`, and prevents further ones. Must not be called from `poll`.
  void stop();

  const std::string& name() const { return name_; }
  // The time at which the running call of `poll` started; nullopt while the thread sleeps.
  std::optional<std::chrono::steady_clock::time_point> busy_since() const;

 private:
  void run();

  const std::string name_;
  const std::function<Interval()> poll_;
  const std::function<void(std::exception_ptr)> on_error_;
  mutable std::mutex mutex_; // guards the fields below
  std::condition_variable changed_;
  bool stopped_ = false, kicked_ = false;
  std::optional<std::chrono::steady_clock::time_point> busy_since_;
  std::thread thread_;
};

// Reports watchdogs whose `poll` runs longer than their limit, because the device or the network does not respond.
class HeartbeatMonitor {
 public:
  HeartbeatMonitor(std::chrono::milliseconds interval, std::function<void(const std::string& name)> on_stuck);
  ~HeartbeatMonitor() = default;

  void add(const Watchdog& watchdog, std::chrono::milliseconds limit);
  void remove(const Watchdog& watchdog);

 private:
  Watchdog::Interval poll();

  struct Watched {
    const Watchdog* watchdog;
    std::chrono::milliseconds limit;
    bool reported = false;
  };
  const std::chrono::milliseconds interval_;
  const std::function<void(const std::string& name)> on_stuck_;
  std::mutex mutex_; // guards watched_
  std::vector<Watched> watched_;
  Watchdog thread_; // declared last: it starts in the constructor and must be destroyed first
};

} // namespace c10d::mccl
