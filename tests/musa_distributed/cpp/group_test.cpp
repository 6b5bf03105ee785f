// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Two ranks of a group as threads of one process. The work on a stream is a host function that waits.
#include "group.h"

#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSADeferredError.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <thread>

#include "blocking_store.h"
#include "communicators.h"
#include "failures.h"
#include "watchdog.h"

namespace c10d::mccl {
namespace {

using std::chrono::milliseconds;

class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

struct TestGroup : Group {
  using Group::Group;
  std::optional<std::string> async_error(const Communicator&) const override {
    return broken ? std::optional<std::string>("the network is gone") : std::nullopt;
  }
  void end_process(const std::string&) override { ++ends; }
  std::atomic<bool> broken{false};
  std::atomic<int> ends{0};
};

Settings quick() {
  Settings settings;
  settings.coordination = milliseconds(10);
  settings.dump_on_failure = false;
  return settings;
}

// A rank with its watchdog, and calls that end when their gate is opened.
struct Rank {
  Rank(const c10::intrusive_ptr<Store>& store, int rank, const Settings& settings)
      : group(std::make_shared<TestGroup>(store, rank, 2, settings)),
        comm(
            std::make_shared<Communicator>(
                mcclUniqueId{}, rank, 2, c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(rank)), false)) {
    group->set_name({"0", "tested"}, {0, 1});
    group->add(comm);
    watchdog = std::make_unique<Watchdog>(
        "watch", [this] { return group->poll(); }, [](const std::exception_ptr&) { FAIL(); });
  }
  ~Rank() {
    gate.open(); // the work on the stream waits for it
    C10_MUSA_IGNORE_ERROR(musaStreamSynchronize(comm->stream.stream()));
    watchdog.reset();
  }

  std::shared_ptr<Launched> call(uint64_t seq, milliseconds timeout, bool waits) {
    const c10::musa::MUSAGuard guard(comm->device);
    auto launched = std::make_shared<Launched>(false, comm->stream);
    launched->type = OpType::ALLREDUCE;
    launched->operations = std::make_shared<const Operations>(
        Operations{seq, "mccl:all_reduce", {{OpType::ALLREDUCE, "mccl:all_reduce", group->rank()}}});
    launched->comms = {comm};
    launched->timeout = timeout;
    if (waits) {
      C10_MUSA_CHECK(
          musaLaunchHostFunc(comm->stream.stream(), [](void* data) { static_cast<Gate*>(data)->wait(); }, &gate));
    }
    launched->end->record(comm->stream);
    launched->on_stream.store(true);
    group->add(launched);
    watchdog->kick();
    return launched;
  }

  Gate gate;
  std::shared_ptr<TestGroup> group;
  std::shared_ptr<Communicator> comm;
  std::unique_ptr<Watchdog> watchdog;
};

// The failure of a group is readable a moment before its communicator is aborted.
template <class Communicator>
bool is_aborted(const Communicator& comm) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!comm.aborted() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return comm.aborted();
}

class GroupTest : public testing::Test {
 protected:
  // No error that a test has read or raised is raised again.
  void TearDown() override { EXPECT_NO_THROW(c10::musa::check_deferred_error()); }

  c10::intrusive_ptr<Store> store = c10::make_intrusive<HashStore>();
};

TEST(KeptTensors, TakenTensorsAreInOneOfBothAtAnyTime) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, at::DataPtr(nullptr, c10::kCPU), nullptr, false);
  const std::vector<at::Tensor> tensors{at::Tensor(
      c10::make_intrusive<c10::TensorImpl>(
          std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), caffe2::TypeMeta::Make<float>()))};
  for (int turn = 0; turn < 3000; ++turn) {
    KeptTensors of_the_call, finished;
    of_the_call.add(tensors);
    std::thread watchdog([&] { finished.take(of_the_call); });
    of_the_call.clear();
    finished.clear();
    EXPECT_EQ(tensors.front().use_count(), 1) << "turn " << turn;
    watchdog.join();
  }
}

TEST_F(GroupTest, CallsThatEndAreForgotten) {
  Rank rank(store, 0, quick());
  for (uint64_t seq = 1; seq <= 20; ++seq) {
    rank.call(seq, std::chrono::minutes(1), false);
  }
  rank.group->drain(std::chrono::minutes(1));
  EXPECT_EQ(rank.group->failure(), nullptr);
}

TEST_F(GroupTest, CallsAreNotAskedWhileAGraphIsCaptured) {
  Rank rank(store, 0, quick());
  c10::musa::note_capture_begin();
  rank.call(1, milliseconds(1), true); // late, which a query would detect
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(rank.group->failure(), nullptr);
  rank.gate.open();
  C10_MUSA_CHECK(musaStreamSynchronize(rank.comm->stream.stream()));
  EXPECT_TRUE(c10::musa::note_capture_end());
  rank.group->drain(std::chrono::minutes(1));
  EXPECT_EQ(rank.group->failure(), nullptr);
}

TEST(BetweenCaptures, ACaptureBeginsOnceNoThreadIsBetween) {
  std::atomic<bool> captures{false};
  std::thread capture;
  {
    auto between = c10::musa::BetweenCaptures::enter();
    ASSERT_TRUE(between);
    const c10::musa::BetweenCaptures moved = std::move(*between);
    between.reset(); // a moved-from instance holds nothing
    capture = std::thread([&] {
      c10::musa::note_capture_begin();
      captures.store(true);
    });
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_FALSE(captures.load());
  }
  capture.join();
  EXPECT_TRUE(captures.load());
  EXPECT_FALSE(c10::musa::BetweenCaptures::enter());
  EXPECT_TRUE(c10::musa::note_capture_end());
  EXPECT_TRUE(c10::musa::BetweenCaptures::enter());
}

TEST_F(GroupTest, ACallThatTakesTooLongFailsTheGroupOnEveryRank) {
  Settings settings = quick();
  settings.coordination = std::chrono::seconds(1); // a busy machine may take that long for an answer, twice
  Rank first(store, 0, settings), second(store, 1, settings);
  second.call(1, std::chrono::minutes(1), false);
  const auto launched = first.call(2, milliseconds(20), true);
  const std::string text = failure_of(*first.group);
  EXPECT_NE(
      text.find(
          "[rank 0 of 2, group tested] mccl:all_reduce #2 (in: nothing; out: nothing) did not finish "
          "within 20 ms"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("rank 1: last called mccl:all_reduce #1"), std::string::npos) << text;
  EXPECT_NE(failure_of(*second.group).find("another rank has failed: [rank 0 of 2"), std::string::npos);
  EXPECT_NE(launched->failure(), nullptr);
  EXPECT_TRUE(is_aborted(*first.comm) && is_aborted(*second.comm));
  EXPECT_EQ(first.group->error(), ErrorType::TIMEOUT);
  EXPECT_EQ(second.group->error(), ErrorType::REMOTE_ERROR);
  EXPECT_EQ(first.group->ends, 0);
}

TEST_F(GroupTest, AnAsynchronousErrorFailsTheGroup) {
  Rank rank(store, 0, quick());
  rank.group->broken = true;
  rank.call(1, std::chrono::minutes(1), true);
  const std::string text = failure_of(*rank.group);
  EXPECT_NE(text.find("cannot finish: the network is gone"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1: does not answer"), std::string::npos) << text;
}

TEST_F(GroupTest, TheProcessEndsWhereThatIsWanted) {
  for (const auto handling : {Settings::OnError::TearDown, Settings::OnError::EndAtOnce}) {
    Settings settings = quick();
    settings.on_error = handling;
    const auto own = c10::make_intrusive<HashStore>();
    Rank rank(own, 0, settings);
    rank.call(1, milliseconds(10), true);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (rank.group->ends == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(rank.group->ends, 1);
    EXPECT_EQ(rank.comm->aborted(), handling == Settings::OnError::TearDown);
    if (const auto failure = rank.group->failure()) {
      c10::musa::forget_deferred_error(failure);
    }
  }
}

TEST_F(GroupTest, AnErrorIsRaisedWhereTheProgramWaits) {
  Rank rank(store, 0, quick());
  rank.call(1, milliseconds(20), true);
  while (rank.group->failure() == nullptr) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_THROW(c10::musa::check_deferred_error(), c10::DistBackendError);
  EXPECT_NO_THROW(c10::musa::check_deferred_error());
}

// Another rank aborts first, which can end a call of this one.
TEST_F(GroupTest, AWaitThatEndsWhileReportsAreCollectedRaisesTheError) {
  Settings settings = quick();
  settings.coordination = milliseconds(300); // rank 1 never answers, so reports take more than twice that
  Rank rank(store, 0, settings);
  rank.call(1, milliseconds(20), true);
  while (rank.group->error() == ErrorType::SUCCESS) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(rank.group->failure(), nullptr);
  rank.gate.open();
  C10_MUSA_CHECK(musaStreamSynchronize(rank.comm->stream.stream()));
  EXPECT_THROW(c10::musa::check_deferred_error(), c10::DistBackendError);
  EXPECT_NE(failure_of(*rank.group).find("rank 1: does not answer"), std::string::npos);
}

TEST_F(GroupTest, AFailureThatIsReadAtOnceIsNotRaisedAgain) {
  for (int turn = 0; turn < 20; ++turn) {
    const auto own = c10::make_intrusive<HashStore>();
    Rank rank(own, 0, quick());
    rank.group->broken = true;
    rank.call(1, std::chrono::minutes(1), true);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (rank.group->failure() == nullptr && std::chrono::steady_clock::now() < deadline) {
      // without a pause: the error is read as soon as it is readable
    }
    EXPECT_THROW(rank.group->check(), c10::DistBackendError);
    ASSERT_TRUE(is_aborted(*rank.comm)); // an error that is deferred late is deferred before the abort
    ASSERT_FALSE(c10::musa::deferred_error_pending.load()) << "turn " << turn;
  }
}

TEST_F(GroupTest, DrainRaisesTheFailureOnce) {
  Rank rank(store, 0, quick());
  rank.group->broken = true;
  rank.call(1, std::chrono::minutes(1), true);
  EXPECT_THROW(rank.group->drain(std::chrono::minutes(1)), c10::DistBackendError);
  EXPECT_NO_THROW(c10::musa::check_deferred_error());
}

TEST(ComingError, IsNoErrorIfItIsNotDeferred) {
  { const c10::musa::ComingError coming; }
  EXPECT_NO_THROW(c10::musa::check_deferred_error());
  std::thread([] {
    const c10::musa::ComingError coming;
    EXPECT_NO_THROW(c10::musa::check_deferred_error()); // the thread does not wait for itself
  }).join();
  EXPECT_FALSE(c10::musa::deferred_error_pending.load());
}

TEST_F(GroupTest, ThreadsCallWhileOthersAskAndAbort) {
  Rank rank(store, 0, quick());
  std::atomic<bool> stop{false};
  std::thread asking([&] {
    while (!stop) {
      (void)rank.group->failure();
      (void)rank.group->description();
      rank.group->free_operands();
      (void)rank.group->communicators();
    }
  });
  for (uint64_t seq = 1; seq <= 100; ++seq) {
    rank.call(seq, std::chrono::minutes(1), false);
  }
  rank.call(101, std::chrono::minutes(1), true);
  rank.group->abort("was aborted by the test");
  EXPECT_NE(failure_of(*rank.group).find("was aborted by the test"), std::string::npos);
  stop = true;
  asking.join();
}

// A call that is enqueued during an abort may end without a valid result, so it must fail whenever it comes.
TEST_F(GroupTest, ACallThatIsEnqueuedDuringAnAbortFails) {
  for (int turn = 0; turn < 100; ++turn) {
    const auto own = c10::make_intrusive<HashStore>();
    Rank rank(own, 0, quick());
    std::atomic<int> enqueued{0};
    std::vector<std::shared_ptr<Launched>> calls;
    std::thread program([&] {
      for (uint64_t seq = 1; (rank.group->failure() == nullptr || seq < 20) && seq < 500; ++seq) {
        calls.push_back(rank.call(seq, std::chrono::minutes(1), true));
        ++enqueued;
      }
      calls.push_back(rank.call(1000, std::chrono::minutes(1), true)); // after the abort
    });
    while (enqueued < 1 + turn % 10) {
      std::this_thread::yield();
    }
    rank.group->abort("was aborted by the test");
    program.join();
    for (const auto& call : calls) {
      EXPECT_NE(call->failure(), nullptr) << "turn " << turn << ", call " << call->seq() << " of " << calls.size();
    }
  }
}

TEST_F(GroupTest, AnAbortDoesNotWaitForAThreadThatReportsAFailure) {
  Settings settings = quick();
  settings.coordination = std::chrono::seconds(1); // rank 1 never answers, so the reports take longer than that
  Rank rank(store, 0, settings);
  rank.group->broken = true;
  rank.call(1, std::chrono::minutes(1), true);
  while (rank.group->error() == ErrorType::SUCCESS) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(rank.group->failure(), nullptr);
  rank.group->abort("was aborted by the test");
  EXPECT_NE(failure_of(*rank.group).find("was aborted by the test"), std::string::npos);
  EXPECT_TRUE(rank.comm->aborted());
}

TEST_F(GroupTest, ACommunicatorThatIsCreatedDuringAnAbortIsAborted) {
  Rank rank(store, 0, quick());
  rank.group->abort("was aborted by the test");
  const auto late = std::make_shared<Communicator>(mcclUniqueId{}, 0, 2, rank.comm->device, false);
  EXPECT_THROW(rank.group->add(late), c10::DistBackendError);
  EXPECT_TRUE(late->aborted());
}

TEST_F(GroupTest, CommunicatorsAreCreatedQueriedAndDestroyedByThreads) {
  for (int turn = 0; turn < 20; ++turn) {
    const auto own = c10::make_intrusive<HashStore>();
    const auto group = std::make_shared<TestGroup>(own, 0, 1, quick());
    group->set_name({"0", "tested"}, {0});
    const auto communicators = std::make_shared<Communicators>(
        own, group, c10::make_intrusive<Backend::Options>("mccl", std::chrono::minutes(1)), false);
    std::atomic<int> found{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, thread] {
        const c10::Device device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(thread % 2));
        try {
          for (int call = 0; call < 1000; ++call) {
            const auto comm = communicators->of_all(device);
            const auto lock = comm->lock();
            (void)comm->handle();
            (void)comm->async_error();
            (void)communicators->device();
            ++found;
          }
        } catch (const c10::Error&) { // after the abort
        }
      });
    }
    while (found < 5 * turn) {
      std::this_thread::yield();
    }
    group->abort("was aborted by the test");
    communicators->end();
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(communicators->device(), std::nullopt);
    EXPECT_ANY_THROW(communicators->of_all(c10::Device(c10::kPrivateUse1, 0)));
  }
}

TEST_F(GroupTest, ACallThatIsLateFailsThoughTheStoreBlocks) {
  const auto blocking = c10::make_intrusive<BlockingStore>();
  Rank rank(blocking, 0, quick());
  rank.group->add_hosts({{0, "host-a (eth0 10.0.0.1)"}, {1, "host-b (eth0 10.0.0.2)"}});
  blocking->block();
  rank.call(1, milliseconds(20), true);
  const std::string text = failure_of(*rank.group);
  EXPECT_NE(text.find("did not finish within 20 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("the store does not answer"), std::string::npos) << text;
  EXPECT_NE(text.find("host-b (eth0 10.0.0.2): rank 1"), std::string::npos) << text;
  blocking->release();
}

} // namespace
} // namespace c10d::mccl
