// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "recorder.h"

#include <gtest/gtest.h>

#include <thread>

namespace c10d::mccl {
namespace {

struct Finished : Progress {
  bool started() const override { return true; }
  bool finished() const override { return true; }
};

Recorder::Call call(uint64_t seq) {
  static const auto group = std::make_shared<const GroupName>(GroupName{"0", "default_pg"});
  static const auto all_reduce = std::make_shared<const Operation>(Operation{OpType::ALLREDUCE, "mccl:all_reduce"});
  return {0, group, all_reduce, seq, 0, seq, false, std::chrono::seconds(1)};
}

TEST(Recorder, KeepsTheNewest) {
  Recorder recorder(3);
  std::vector<std::optional<size_t>> ids;
  for (uint64_t seq = 1; seq <= 5; ++seq) {
    ids.push_back(recorder.record(call(seq), {}));
  }
  recorder.finish(ids.front(), true, std::nullopt); // its record is overwritten, so this has no effect
  const std::string dump = recorder.dump(true, false, false);
  EXPECT_NE(dump.find("mccl:all_reduce"), std::string::npos);
}

TEST(Recorder, CallsFromBeforeAResetDoNotCountAsThoseAfterIt) {
  Recorder recorder(3);
  const auto before = recorder.record(call(1), {});
  recorder.reset();
  EXPECT_EQ(recorder.dump(true, false, false).find("mccl:all_reduce"), std::string::npos);
  for (uint64_t seq = 2; seq <= 5; ++seq) {
    const auto after = recorder.record(call(seq), {});
    EXPECT_NE(after, before);
    recorder.finish(before, true, std::nullopt);
    EXPECT_NE(recorder.dump(true, false, /*only_active=*/true).find("mccl:all_reduce"), std::string::npos);
    recorder.finish(after, true, std::nullopt);
    EXPECT_EQ(recorder.dump(true, false, /*only_active=*/true).find("mccl:all_reduce"), std::string::npos);
  }
}

TEST(Recorder, WithoutRoomRecordsNothing) {
  Recorder recorder(0);
  EXPECT_FALSE(recorder.enabled());
  EXPECT_EQ(recorder.record(call(1), {}), std::nullopt);
  recorder.finish(std::nullopt, true, std::nullopt);
}

TEST(Recorder, AsksCallsThatAreUnderWay) {
  Recorder recorder(3);
  const auto progress = std::make_shared<Finished>();
  recorder.record(call(1), progress);
  EXPECT_NE(recorder.dump(true, false, false).find("completed"), std::string::npos);
  EXPECT_EQ(recorder.dump(true, false, /*only_active=*/true).find("mccl:all_reduce"), std::string::npos);
}

TEST(Recorder, ThreadsRecordWhileOthersRead) {
  Recorder recorder(16);
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 3; ++writer) {
    threads.emplace_back([&] {
      for (uint64_t seq = 0; seq < 100; ++seq) {
        const auto progress = std::make_shared<Finished>();
        const auto id = recorder.record(call(seq), progress);
        recorder.set_status(0, {static_cast<int64_t>(seq), -1, -1});
        recorder.finish(id, true, 1.0F);
      }
    });
  }
  threads.emplace_back([&] {
    for (int turn = 0; turn < 20; ++turn) {
      // All calls have finished, whether or not the recorder has been notified yet.
      EXPECT_EQ(recorder.dump(true, false, /*only_active=*/true).find("mccl:all_reduce"), std::string::npos);
      recorder.name_group({"0", "default_pg"}, {0, 1});
    }
  });
  for (auto& thread : threads) {
    thread.join();
  }
}

} // namespace
} // namespace c10d::mccl
