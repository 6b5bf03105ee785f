// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "poller.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace c10d::mccl {
namespace {

using std::chrono::steady_clock;

constexpr Watchdog::Interval kIdle = std::chrono::hours(1);

// One per process. Terminates the process if a poll hangs, for example because the device's driver does not return.
HeartbeatMonitor& heartbeat() {
  static HeartbeatMonitor& monitor = *new HeartbeatMonitor(std::chrono::seconds(1), [](const std::string& name) {
    std::cerr << "The watchdog " << name
              << " of a process group hangs: the device or the store does not answer.\nThe process is terminated. "
                 "TORCH_MCCL_HEARTBEAT_TIMEOUT_SEC sets the time limit; TORCH_MCCL_ENABLE_MONITORING=0 disables the "
                 "check."
              << std::endl;
    std::abort();
  });
  return monitor;
}

std::atomic<bool> monitored{false}; // so that the monitor's thread does not start where it is disabled

void monitor(const Watchdog& watchdog, const Settings& settings) {
  if (settings.monitoring) {
    monitored = true;
    heartbeat().add(watchdog, settings.heartbeat_timeout);
  }
}

void end(std::unique_ptr<Watchdog> watchdog) {
  if (watchdog != nullptr && monitored) {
    heartbeat().remove(*watchdog);
  }
}

[[noreturn]] void never(const std::exception_ptr& error) { std::rethrow_exception(error); }

} // namespace

Poller& Poller::instance() {
  static Poller& poller = *new Poller(); // groups may be destroyed when the process exits
  return poller;
}

void Poller::add(std::shared_ptr<Group> group) {
  const std::lock_guard lock(mutex_);
  if (watchdog_ == nullptr) {
    watchdog_ = std::make_unique<Watchdog>("mccl_watchdog", [this] { return poll(); }, &never);
    monitor(*watchdog_, group->settings());
  }
  groups_.push_back(std::make_shared<Polled>(Polled{std::move(group)}));
  watchdog_->kick();
}

void Poller::kick(const Group& group) {
  const std::lock_guard lock(mutex_);
  for (const auto& polled : groups_) {
    if (polled->group.get() == &group) {
      polled->kicked = true;
      watchdog_->kick();
    }
  }
}

void Poller::remove(const Group& group) {
  std::unique_lock lock(mutex_);
  const auto found = std::find_if(
      groups_.begin(), groups_.end(), [&group](const auto& polled) { return polled->group.get() == &group; });
  if (found == groups_.end()) {
    return;
  }
  const std::shared_ptr<Polled> removed = *found;
  groups_.erase(found);
  // A completion hook may destroy a group, on the thread that polls.
  const bool polls = std::this_thread::get_id() == thread_;
  changed_.wait(lock, [&] { return (polls || current_ != removed) && !removed->reporting; });
  auto report = std::move(removed->report);
  std::unique_ptr<Watchdog> watchdog;
  if (groups_.empty() && !polls) {
    watchdog = std::move(watchdog_);
    thread_ = {};
  }
  lock.unlock();
  end(std::move(report));
  end(std::move(watchdog));
}

Watchdog::Interval Poller::poll() {
  std::unique_lock lock(mutex_);
  thread_ = std::this_thread::get_id();
  const std::vector<std::shared_ptr<Polled>> all = groups_;
  for (const auto& polled : all) {
    const bool due = polled->kicked || polled->next <= steady_clock::now();
    const bool removed = std::find(groups_.begin(), groups_.end(), polled) == groups_.end();
    if (!due || removed || polled->reporting) {
      continue;
    }
    if (auto finished = std::move(polled->report)) {
      lock.unlock();
      end(std::move(finished));
      lock.lock();
    }
    current_ = polled;
    polled->kicked = false;
    lock.unlock();
    poll(polled);
    lock.lock();
    current_ = nullptr;
    changed_.notify_all();
  }
  auto next = steady_clock::now() + kIdle;
  for (const auto& polled : groups_) {
    if (!polled->reporting) {
      next = std::min(next, polled->kicked ? steady_clock::time_point{} : polled->next);
    }
  }
  const auto left = std::chrono::ceil<Watchdog::Interval>(next - steady_clock::now());
  return std::max(left, Watchdog::Interval{0});
}

void Poller::poll(const std::shared_ptr<Polled>& polled) {
  Group& group = *polled->group;
  Group::Seen seen;
  try {
    seen = group.look();
  } catch (const std::exception& error) {
    seen = {kIdle, [&group, what = c10::str("is no longer watched: ", error.what())] {
              group.fail(ErrorType::COMM_ERROR, nullptr, what);
            }};
  }
  const std::lock_guard lock(mutex_);
  polled->next = steady_clock::now() + seen.interval;
  if (seen.report) {
    start_report(polled, std::move(seen.report));
  }
}

// Called with the lock.
void Poller::start_report(const std::shared_ptr<Polled>& polled, std::function<void()> report) {
  polled->reporting = true;
  polled->report = std::make_unique<Watchdog>(
      c10::str("mccl_report_", polled->group->number()),
      [this, polled = polled.get(), report = std::move(report)] {
        {
          const std::lock_guard lock(mutex_);
          if (!polled->reporting) {
            return kIdle;
          }
        }
        report();
        const std::lock_guard lock(mutex_);
        polled->reporting = false;
        polled->kicked = true; // the calls have failed
        if (watchdog_ != nullptr) {
          watchdog_->kick();
        }
        changed_.notify_all();
        return kIdle;
      },
      &never);
  monitor(*polled->report, polled->group->settings());
}

} // namespace c10d::mccl
