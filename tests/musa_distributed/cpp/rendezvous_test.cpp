// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Ranks as threads that exchange ids in a store and start a communicator.
#include "rendezvous.h"

#include <gtest/gtest.h>

#include <future>
#include <numeric>
#include <thread>

#include "blocking_store.h"
#include "fake_mccl.h"
#include "store_thread.h"

namespace c10d::mccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class RendezvousTest : public testing::Test {
 protected:
  ~RendezvousTest() override { set_init_of_fake_mccl(nullptr); }

  Start start(size_t rank, int ranks, milliseconds timeout) {
    std::vector<int> members(static_cast<size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    const c10::Device device(c10::kPrivateUse1, 0);
    return {store, "key", "[rank " + std::to_string(rank) + "]", rank, members, timeout, device, false, {}};
  }

  // Runs `step` for each rank on its own thread; returns the texts of the exceptions.
  template <class Step>
  std::vector<std::string> of_all(int ranks, Step step) {
    std::vector<std::string> raised(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          step(static_cast<size_t>(rank));
        } catch (const c10::DistBackendError& error) {
          raised[static_cast<size_t>(rank)] = error.what_without_backtrace();
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    return raised;
  }

  const c10::intrusive_ptr<BlockingStore> store = c10::make_intrusive<BlockingStore>();
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(RendezvousTest, RanksMeetOnAStoreWithOldKeys) {
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<Met> met(3);
    for (const std::string& raised :
         of_all(3, [&](size_t rank) { met[rank] = meet(*store, start(rank, 3, minutes(1))); })) {
      EXPECT_EQ(raised, "");
    }
    EXPECT_EQ(met[0].id.internal[0], met[1].id.internal[0]);
    EXPECT_EQ(met[0].id.internal[0], met[2].id.internal[0]);
    EXPECT_EQ(met[2].hosts.size(), 3);
  }
}

TEST_F(RendezvousTest, ARankThatDoesNotComeIsNamed) {
  std::atomic<bool> stop{false};
  std::thread third([&] {
    Start its = start(2, 3, minutes(1));
    its.check = [&] { TORCH_CHECK(!stop, "enough"); };
    EXPECT_THROW(meet(*store, its), c10::Error);
  });
  try {
    (void)meet(*store, start(0, 3, milliseconds(1000)));
    ADD_FAILURE();
  } catch (const c10::DistBackendError& error) {
    EXPECT_TRUE(contains(error.what(), "these ranks did not arrive: rank 1.")) << error.what();
  }
  stop = true;
  third.join();
}

TEST_F(RendezvousTest, AStartThatMcclDoesNotFinishEndsWithTheTimeoutAndIsAbortedLater) {
  std::promise<void> released;
  const std::shared_future<void> release(released.get_future());
  set_init_of_fake_mccl([release](int) {
    release.wait();
    return mcclSuccess;
  });
  const int before = aborts_of_fake_mccl();
  for (const std::string& raised :
       of_all(2, [&](size_t rank) { (void)start_communicator(start(rank, 2, milliseconds(200))); })) {
    EXPECT_TRUE(contains(raised, "mcclCommInitRank did not return within 200 ms")) << raised;
    EXPECT_TRUE(contains(raised, "): ranks 0, 1")) << raised;
  }
  released.set_value();
  const auto deadline = std::chrono::steady_clock::now() + minutes(1);
  while (aborts_of_fake_mccl() < before + 2 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(aborts_of_fake_mccl(), before + 2);
}

TEST_F(RendezvousTest, AFailureOfOneRankEndsTheStartOfAll) {
  std::promise<void> released;
  const std::shared_future<void> release(released.get_future());
  set_init_of_fake_mccl([release](int rank) {
    if (rank == 1) {
      return mcclSystemError;
    }
    release.wait();
    return mcclSuccess;
  });
  for (const std::string& raised :
       of_all(3, [&](size_t rank) { (void)start_communicator(start(rank, 3, minutes(5))); })) {
    EXPECT_TRUE(contains(raised, "rank 1 on ")) << raised;
    EXPECT_TRUE(contains(raised, "mcclCommInitRank failed")) << raised;
  }
  released.set_value();
}

TEST_F(RendezvousTest, AStoreThatDoesNotAnswerEndsTheStart) {
  store->block();
  try {
    (void)start_communicator(start(1, 2, milliseconds(50)));
    ADD_FAILURE();
  } catch (const c10::DistBackendError& error) {
    EXPECT_TRUE(contains(error.what(), "the store does not answer")) << error.what();
  }
  store->release();
}

TEST_F(RendezvousTest, AStartGivesEachRankTheCommunicatorAndThePlaces) {
  for (const std::string& raised : of_all(2, [&](size_t rank) {
         const Started started = start_communicator(start(rank, 2, minutes(1)));
         EXPECT_EQ(started.comm->rank, static_cast<int>(rank));
         EXPECT_EQ(started.hosts.at(0), own_host());
       })) {
    EXPECT_EQ(raised, "");
  }
}

TEST(StoreThreadTest, AccessesRunInOrderAndRaiseAtTheirCaller) {
  StoreThread thread(c10::make_intrusive<HashStore>());
  thread.post([](Store& store) { store.set("a", std::vector<uint8_t>{1}); });
  EXPECT_EQ(thread.within(minutes(1), [](Store& store) { return store.get("a"); }), (std::vector<uint8_t>{1}));
  const auto raise = [](Store&) -> int { TORCH_CHECK(false, "no"); };
  EXPECT_THROW((void)thread.within(minutes(1), raise), c10::Error);
}

TEST(StoreThreadTest, ABlockedAccessIsLeftToItself) {
  const auto store = c10::make_intrusive<BlockingStore>();
  store->block();
  {
    StoreThread thread(store);
    EXPECT_EQ(thread.within(milliseconds(10), [](Store& its) { return its.check({"a"}); }), std::nullopt);
    EXPECT_TRUE(thread.busy());
  }
  store->release();
}

TEST(PlacesTest, RanksOfOnePlaceAreOnOneLine) {
  EXPECT_EQ(describe(Hosts{{0, "b"}, {1, "a"}, {2, "b"}}), "\n  a: rank 1\n  b: ranks 0, 2");
}

} // namespace
} // namespace c10d::mccl
