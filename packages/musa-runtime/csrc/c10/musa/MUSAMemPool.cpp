// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAMemPool.h>

#include <c10/musa/MUSAFunctions.h>

#include <atomic>
#include <thread>

namespace c10::musa {

MemPool::MemPool(
    std::shared_ptr<MUSACachingAllocator::MUSAAllocator> allocator, bool is_user_created, bool use_on_oom,
    bool no_split)
    : id_(graph_pool_handle(is_user_created)), device_(current_device()) {
  MUSACachingAllocator::createOrIncrefPool(device_, id_, std::move(allocator));
  if (use_on_oom) {
    MUSACachingAllocator::setUseOnOOM(device_, id_, true);
  }
  if (no_split) {
    MUSACachingAllocator::setNoSplit(device_, id_);
  }
}

MemPool::~MemPool() {
  try {
    MUSACachingAllocator::releasePool(device_, id_);
    if (use_count() == 0) {
      MUSACachingAllocator::emptyCache(id_);
    }
  } catch (const c10::Error& error) {
    TORCH_WARN("A memory pool could not release its memory: ", error.what_without_backtrace());
  }
}

int MemPool::use_count() const { return MUSACachingAllocator::getPoolUseCount(device_, id_); }

MempoolId_t MemPool::graph_pool_handle(bool is_user_created) {
  // Starts at 1: {0, 0} is the default pool.
  static std::atomic<CaptureId_t> of_users{1};
  static std::atomic<CaptureId_t> of_graphs{1};
  return is_user_created ? MempoolId_t{0, of_users++} : MempoolId_t{of_graphs++, 0};
}

void beginAllocateCurrentThreadToPool(DeviceIndex device, MempoolId_t id) {
  MUSACachingAllocator::beginAllocateToPool(
      device, id, [self = std::this_thread::get_id()](musaStream_t) { return std::this_thread::get_id() == self; });
}

void beginAllocateCurrentStreamToPool(DeviceIndex device, MempoolId_t id) {
  MUSACachingAllocator::beginAllocateToPool(
      device, id, [chosen = getCurrentMUSAStream(device).stream()](musaStream_t stream) { return stream == chosen; });
}

} // namespace c10::musa
