// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Blocks that are freed while other streams use them: the end of the uses, and failures of the SDK.
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/allocator/MUSAPendingFrees.h>

#include "runtime_test.h"

namespace {

using allocator::Block;
using allocator::PendingFrees;
using Wait = PendingFrees::Wait;

class PendingFreesTest : public RuntimeTest {
 protected:
  // A block in the state after its free, which these streams used too.
  static Block freed(std::initializer_list<MUSAStream> uses) {
    Block block;
    block.stream_uses = uses;
    return block;
  }

  allocator::AllocatorMutex mutex_;
  PendingFrees::Lock lock_{mutex_};
  std::vector<Block*> finished_;
  PendingFrees frees_{[this](Block* block) {
    EXPECT_TRUE(lock_.owns_lock());
    EXPECT_EQ(0u, block->pending_events);
    finished_.push_back(block);
  }};
  const MUSAStream first_ = c10::musa::getStreamFromPool();
  const MUSAStream second_ = c10::musa::getStreamFromPool();
};

} // namespace

TEST_F(PendingFreesTest, ABlockWaitsForEveryStreamThatUsesIt) {
  Block block = freed({first_, second_});
  {
    Blocker blocker(second_.stream());
    frees_.add(&block, lock_);
    EXPECT_TRUE(lock_.owns_lock());
    EXPECT_FALSE(frees_.empty());
    EXPECT_FALSE(block.available());
    if (!mode_is("lazy")) { // in lazy mode, the query runs the stream's work
      EXPECT_EQ(musaSuccess, musaStreamSynchronize(first_.stream()));
      frees_.process(Wait::No, lock_);
      EXPECT_TRUE(finished_.empty());
      EXPECT_EQ(1u, block.pending_events);
    }
  }
  frees_.process(Wait::Yes, lock_);
  EXPECT_TRUE(lock_.owns_lock());
  EXPECT_EQ(std::vector<Block*>{&block}, finished_);
  EXPECT_TRUE(frees_.empty());
}

TEST_F(PendingFreesTest, BlocksOfOneStreamFinishInTheirOrder) {
  std::array<Block, 3> blocks{freed({first_}), freed({first_}), freed({first_})};
  for (Block& block : blocks) {
    frees_.add(&block, lock_);
  }
  frees_.process(Wait::Yes, lock_);
  EXPECT_EQ((std::vector<Block*>{&blocks[0], &blocks[1], &blocks[2]}), finished_);
}

TEST_F(PendingFreesTest, DuringACaptureNoEventIsRecordedOrQueried) {
  Block earlier = freed({first_});
  Block block = freed({first_});
  frees_.add(&earlier, lock_);
  c10::musa::note_capture_begin();
  const auto calls = musaEmulatorCallCount();
  frees_.add(&block, lock_);
  frees_.process(Wait::Yes, lock_);
  EXPECT_EQ(calls, musaEmulatorCallCount());
  EXPECT_TRUE(finished_.empty());
  EXPECT_FALSE(block.available());
  EXPECT_TRUE(c10::musa::note_capture_end());
  frees_.add_deferred(lock_);
  frees_.process(Wait::Yes, lock_);
  EXPECT_EQ((std::vector<Block*>{&earlier, &block}), finished_);
}

TEST_F(PendingFreesTest, ABlockWhoseEventCannotBeRecordedWaitsForTheStreamItself) {
  Block block = freed({first_, second_});
  const auto waits = musaEmulatorApiCallCount("musaStreamSynchronize");
  EXPECT_OK(musaEmulatorFailNext("musaEventRecord", musaErrorUnknown));
  frees_.add(&block, lock_);
  EXPECT_EQ(waits + 1, musaEmulatorApiCallCount("musaStreamSynchronize"));
  EXPECT_EQ(1u, block.pending_events) << "the other stream's event";
  frees_.process(Wait::Yes, lock_);
  EXPECT_EQ(std::vector<Block*>{&block}, finished_);
}

TEST_F(PendingFreesTest, ABlockStaysPendingWhenTheSdkFails) {
  Block block = freed({first_});
  frees_.add(&block, lock_);
  EXPECT_OK(musaEmulatorFailNext("musaEventSynchronize", musaErrorUnknown));
  EXPECT_THROW(frees_.process(Wait::Yes, lock_), c10::Error);
  EXPECT_TRUE(lock_.owns_lock());
  EXPECT_TRUE(finished_.empty());
  EXPECT_FALSE(frees_.empty());
  frees_.process(Wait::Yes, lock_);
  EXPECT_EQ(std::vector<Block*>{&block}, finished_);
}
