// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The threads and the connection that all groups of a process share.
#include "poller.h"

#include <c10/musa/MUSADeferredError.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "events.h"
#include "failures.h"

namespace c10d::mccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Counts what rank 0's store would see of this rank.
class CountingStore : public HashStore {
 public:
  c10::intrusive_ptr<Store> clone() override {
    ++connections;
    return c10::intrusive_ptr<Store>::reclaim_copy(this);
  }
  bool check(const std::vector<std::string>& keys) override {
    ++queries;
    return HashStore::check(keys);
  }
  std::atomic<int> connections{0}, queries{0};
};

c10::intrusive_ptr<Store> prefixed(const c10::intrusive_ptr<Store>& store, const std::string& prefix) {
  return c10::make_intrusive<PrefixStore>(prefix, store);
}

Settings with_interval(milliseconds interval) {
  Settings settings;
  settings.coordination = interval;
  settings.dump_on_failure = false;
  settings.monitoring = false;
  return settings;
}

std::shared_ptr<Group> group_on(
    const c10::intrusive_ptr<Store>& store, const std::string& name, int rank, int size,
    milliseconds interval = milliseconds(10)) {
  auto group = std::make_shared<Group>(prefixed(store, name), rank, size, with_interval(interval));
  group->set_name({name, name}, {});
  return group;
}

size_t threads_named(const std::string& prefix) {
  size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    count += static_cast<size_t>(name.starts_with(prefix));
  }
  return count;
}

TEST(PollerTest, TwentyGroupsHaveOneThreadEachOneConnectionAndOneQueryPerInterval) {
  const auto store = c10::make_intrusive<CountingStore>();
  const auto base = prefixed(store, "job");
  constexpr milliseconds kInterval{100};
  std::vector<std::shared_ptr<Group>> groups;
  for (int number = 0; number < 20; ++number) {
    groups.push_back(group_on(base, "group " + std::to_string(number), 0, 1024, kInterval));
    Poller::instance().add(groups.back());
  }
  std::this_thread::sleep_for(milliseconds(300)); // each group looks for an earlier failure once
  EXPECT_EQ(store->connections, 1);
  EXPECT_EQ(threads_named("mccl_watch"), 1U);
  EXPECT_EQ(threads_named("mccl_store"), 1U);
  const int before = store->queries;
  const auto begin = steady_clock::now();
  std::this_thread::sleep_for(milliseconds(1000));
  const auto intervals = (steady_clock::now() - begin) / kInterval;
  EXPECT_LE(store->queries - before, intervals + 1);
  EXPECT_GE(store->queries - before, 1);
  for (const auto& group : groups) {
    Poller::instance().remove(*group);
  }
  groups.clear();
  EXPECT_EQ(threads_named("mccl_"), 0U);
}

TEST(PollerTest, TheFailureOfAGroupReachesItsOtherRankAndNoOtherGroup) {
  const auto store = c10::make_intrusive<CountingStore>();
  const auto failing = group_on(store, "a", 0, 2), told = group_on(store, "a", 1, 2),
             other = group_on(store, "b", 1, 2);
  for (const auto& group : {told, other}) {
    Poller::instance().add(group);
  }
  std::this_thread::sleep_for(milliseconds(50));
  failing->fail(ErrorType::COMM_ERROR, nullptr, "is broken");
  EXPECT_NE(failure_of(*failing).find("is broken"), std::string::npos);
  EXPECT_NE(failure_of(*told).find("another rank has failed: [rank 0 of 2, group a] is broken"), std::string::npos);
  EXPECT_EQ(other->failure(), nullptr);
  // A second failure on the store, of the other group.
  const auto peer = group_on(store, "b", 0, 2);
  peer->fail(ErrorType::COMM_ERROR, nullptr, "is broken too");
  (void)failure_of(*peer);
  EXPECT_NE(failure_of(*other).find("is broken too"), std::string::npos);
  for (const auto& group : {told, other}) {
    Poller::instance().remove(*group);
  }
  EXPECT_NO_THROW(c10::musa::check_deferred_error());
}

// A note in the store makes each group report to ranks that never reply, which takes 1.75 intervals.
TEST(PollerTest, GroupsReportFailuresAtTheSameTime) {
  constexpr milliseconds kInterval{1000};
  std::vector<std::shared_ptr<Group>> groups;
  const auto store = c10::make_intrusive<CountingStore>();
  for (int number = 0; number < 8; ++number) {
    const std::string name = "group " + std::to_string(number);
    prefixed(store, name)->set("failed", std::vector<uint8_t>{'x'});
    groups.push_back(group_on(store, name, 0, 2, kInterval));
  }
  const auto begin = steady_clock::now();
  for (const auto& group : groups) {
    Poller::instance().add(group);
  }
  for (const auto& group : groups) {
    EXPECT_NE(failure_of(*group).find("another rank has failed: x"), std::string::npos);
  }
  EXPECT_LT(steady_clock::now() - begin, 8 * kInterval); // one after the other takes 14
  for (const auto& group : groups) {
    Poller::instance().remove(*group);
  }
  EXPECT_EQ(threads_named("mccl_"), 1U); // that of the connection, which the groups hold
}

TEST(PollerTest, RemovingWaitsForTheReport) {
  const auto store = c10::make_intrusive<CountingStore>();
  prefixed(store, "a")->set("failed", std::vector<uint8_t>{'x'});
  const auto group = group_on(store, "a", 0, 2, milliseconds(200));
  Poller::instance().add(group);
  while (group->error() == ErrorType::SUCCESS) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(group->failure(), nullptr);
  Poller::instance().remove(*group);
  EXPECT_NE(group->failure(), nullptr);
  Poller::instance().remove(*group); // has no effect
  (void)failure_of(*group);
}

TEST(PollerTest, ThreadsAddKickAndRemoveGroups) {
  const auto store = c10::make_intrusive<CountingStore>();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&store, thread] {
      for (int turn = 0; turn < 100; ++turn) {
        const auto group = group_on(store, c10::str("group ", thread, " ", turn), 0, 2, milliseconds(1));
        Poller::instance().add(group);
        Poller::instance().kick(*group);
        Poller::instance().remove(*group);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(threads_named("mccl_watch"), 0U);
}

TEST(EventPool, AnEventIsUsedAgainByTheSameDeviceAndKind) {
  const auto stream = c10::musa::getCurrentMUSAStream(0);
  musaEvent_t first = nullptr;
  {
    const auto event = pooled_event(0, false);
    event->record(stream);
    first = event->event();
    EXPECT_NE(pooled_event(0, false)->event(), first);
  }
  C10_MUSA_CHECK(musaStreamSynchronize(stream.stream()));
  EXPECT_NE(pooled_event(0, true)->event(), first);
  EXPECT_NE(pooled_event(1, false)->event(), first);
  bool found = false;
  std::vector<std::shared_ptr<c10::musa::MUSAEvent>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(pooled_event(0, false));
    found = found || held.back()->event() == first;
  }
  EXPECT_TRUE(found);
}

} // namespace
} // namespace c10d::mccl
