// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "watchdog.h"

#include <gtest/gtest.h>

#include <latch>
#include <stdexcept>

namespace c10d::mccl {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

void no_error(const std::exception_ptr&) { FAIL() << "nothing has failed"; }

void wait_for(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST(Watchdog, LooksAtOnceAndThenWhenItWantsTo) {
  std::atomic<int> looks{0};
  Watchdog dog("dog", [&] { return ++looks, milliseconds(1); }, no_error);
  wait_for([&] { return looks > 3; });
  dog.stop();
  const int seen = looks;
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(looks, seen);
}

TEST(Watchdog, AKickWakesIt) {
  std::atomic<int> looks{0};
  Watchdog dog("dog", [&] { return ++looks, std::chrono::duration_cast<milliseconds>(hours(1)); }, no_error);
  wait_for([&] { return looks == 1; });
  dog.kick();
  wait_for([&] { return looks == 2; });
}

TEST(Watchdog, AKickWhileItLooksIsNotLost) {
  std::atomic<int> looks{0};
  std::latch looking{1}, kicked{1};
  Watchdog dog(
      "dog",
      [&] {
        if (++looks == 1) {
          looking.count_down();
          kicked.wait();
        }
        return std::chrono::duration_cast<milliseconds>(hours(1));
      },
      no_error);
  looking.wait();
  dog.kick();
  kicked.count_down();
  wait_for([&] { return looks == 2; });
}

TEST(Watchdog, StopWaitsForTheLookThatIsUnderWay) {
  std::latch looking{1};
  std::atomic<bool> done{false};
  Watchdog dog(
      "dog",
      [&] {
        looking.count_down();
        std::this_thread::sleep_for(milliseconds(50));
        done = true;
        return milliseconds(0);
      },
      no_error);
  looking.wait();
  dog.stop();
  EXPECT_TRUE(done);
}

TEST(Watchdog, CanEndBeforeItBegan) {
  for (int i = 0; i < 50; ++i) {
    Watchdog dog("dog", [] { return milliseconds(0); }, no_error);
  }
}

TEST(Watchdog, AnErrorIsToldOnceAndEndsIt) {
  std::atomic<int> looks{0}, errors{0};
  Watchdog dog(
      "dog",
      [&]() -> milliseconds {
        ++looks;
        throw std::runtime_error("bad");
      },
      [&](const std::exception_ptr& error) {
        EXPECT_THROW(std::rethrow_exception(error), std::runtime_error);
        ++errors;
      });
  wait_for([&] { return errors == 1; });
  dog.kick();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(errors, 1);
}

TEST(Watchdog, ManyThreadsKickAndStop) {
  std::atomic<int> looks{0};
  Watchdog dog("dog", [&] { return ++looks, milliseconds(1); }, no_error);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        dog.kick();
        (void)dog.busy_since();
      }
      dog.stop();
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_FALSE(dog.busy_since().has_value());
}

TEST(HeartbeatMonitor, TellsOnceOfEachHang) {
  std::atomic<bool> hang{true};
  Watchdog dog(
      "hanging",
      [&] {
        wait_for([&] { return !hang; });
        return milliseconds(1);
      },
      no_error);
  std::mutex mutex;
  std::vector<std::string> told;
  HeartbeatMonitor monitor(milliseconds(5), [&](const std::string& name) {
    const std::lock_guard lock(mutex);
    told.push_back(name);
  });
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return told.size();
  };
  monitor.add(dog, milliseconds(20));
  wait_for([&] { return count() == 1; });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(count(), 1U);
  // Hangs until the monitor reports a hang; the monitor may miss a pause that is too short.
  for (milliseconds pause{20}; count() == 1 && pause < milliseconds(5000); pause *= 2) {
    hang = false;
    wait_for([&] { return !dog.busy_since().has_value(); });
    std::this_thread::sleep_for(pause);
    hang = true;
    std::this_thread::sleep_for(pause + milliseconds(50));
  }
  EXPECT_GE(count(), 2U);
  monitor.remove(dog);
  hang = false;
  EXPECT_EQ(told.front(), "hanging");
}

TEST(HeartbeatMonitor, IsSilentWhileAllIsWell) {
  HeartbeatMonitor monitor(milliseconds(1), [](const std::string&) { FAIL(); });
  Watchdog dog("dog", [] { return milliseconds(1); }, no_error);
  monitor.add(dog, std::chrono::duration_cast<milliseconds>(hours(1)));
  std::this_thread::sleep_for(milliseconds(50));
  monitor.remove(dog);
}

} // namespace
} // namespace c10d::mccl
