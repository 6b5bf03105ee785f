// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "watchdog.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace c10d::mccl {

Watchdog::Watchdog(std::string name, std::function<Interval()> poll, std::function<void(std::exception_ptr)> on_error)
    : name_(std::move(name)), poll_(std::move(poll)), on_error_(std::move(on_error)), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  stop();
  thread_.join();
}

void Watchdog::kick() {
  {
    const std::lock_guard lock(mutex_);
    kicked_ = true;
  }
  changed_.notify_all();
}

void Watchdog::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !busy_since_.has_value(); });
}

std::optional<std::chrono::steady_clock::time_point> Watchdog::busy_since() const {
  const std::lock_guard lock(mutex_);
  return busy_since_;
}

void Watchdog::run() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  Interval interval{0};
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait_for(lock, interval, [this] { return stopped_ || kicked_; });
    if (stopped_) {
      return;
    }
    kicked_ = false;
    busy_since_ = std::chrono::steady_clock::now();
    lock.unlock();
    std::exception_ptr error;
    try {
      interval = poll_();
    } catch (...) {
      error = std::current_exception();
      on_error_(error);
    }
    lock.lock();
    busy_since_.reset();
    stopped_ = stopped_ || error != nullptr;
    changed_.notify_all();
  }
}

HeartbeatMonitor::HeartbeatMonitor(
    std::chrono::milliseconds interval, std::function<void(const std::string& name)> on_stuck)
    : interval_(interval),
      on_stuck_(std::move(on_stuck)),
      thread_(
          "mccl_heartbeat", [this] { return poll(); },
          [](std::exception_ptr error) { std::rethrow_exception(error); }) {}

void HeartbeatMonitor::add(const Watchdog& watchdog, std::chrono::milliseconds limit) {
  const std::lock_guard lock(mutex_);
  watched_.push_back({&watchdog, limit});
}

void HeartbeatMonitor::remove(const Watchdog& watchdog) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [&](const Watched& watched) { return watched.watchdog == &watchdog; });
}

Watchdog::Interval HeartbeatMonitor::poll() {
  std::vector<std::string> stuck;
  {
    const std::lock_guard lock(mutex_);
    for (Watched& watched : watched_) {
      const auto since = watched.watchdog->busy_since();
      const bool late = since.has_value() && std::chrono::steady_clock::now() - *since > watched.limit;
      if (late && !watched.reported) {
        stuck.push_back(watched.watchdog->name());
      }
      watched.reported = late;
    }
  }
  for (const std::string& name : stuck) {
    on_stuck_(name);
  }
  return interval_;
}

} // namespace c10d::mccl
