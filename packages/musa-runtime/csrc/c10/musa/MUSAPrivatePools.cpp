// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSADeviceCachingAllocator.h>

#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAException.h>

#include <algorithm>
#include <exception>

// Pools beside the default one: who fills them and who holds them.
namespace c10::musa::MUSACachingAllocator {
namespace {

std::string text_of(MempoolId_t id) {
  return c10::str("(", id.first, ", ", id.second, ")");
}

} // namespace

MemoryPool& DeviceCachingAllocator::private_pool(MempoolId_t id) {
  const auto found = pools_.find(id);
  TORCH_CHECK(
      found != pools_.end() && found->second->is_private(), "musa:", static_cast<int>(device_),
      " has no private memory pool ", text_of(id), ".\n",
      "Likely causes: its last holder (graph or MemPool) has released it, or the id is of another device.");
  return *found->second;
}

MemoryPool& DeviceCachingAllocator::hold_pool(MempoolId_t id, std::shared_ptr<MUSAAllocator> source, Lock& /*locked*/) {
  TORCH_CHECK(id != (MempoolId_t{0, 0}), "(0, 0) is the default memory pool, not a private one.");
  auto& pool = pools_[id];
  if (pool == nullptr) {
    pool = std::make_unique<MemoryPool>(id);
    pool->source = std::move(source);
  } else {
    TORCH_CHECK(
        source == nullptr || source == pool->source, "The memory pool ", text_of(id), " of musa:",
        static_cast<int>(device_), " exists and takes its memory from another allocator.\n",
        "Cure: name the allocator when the pool is made, or make another pool.");
  }
  ++pool->use_count;
  return *pool;
}

void DeviceCachingAllocator::hold_pool(MempoolId_t id, std::shared_ptr<MUSAAllocator> source) {
  Lock lock(mutex_);
  hold_pool(id, std::move(source), lock);
}

void DeviceCachingAllocator::begin_filling(MempoolId_t id, std::function<bool(musaStream_t)> filter) {
  TORCH_CHECK(filter != nullptr, "A memory pool is filled by the streams that a filter names; it must not be empty.");
  Lock lock(mutex_);
  for (const Filling& filling : fillings_) {
    TORCH_CHECK(
        filling.pool->small.id != id, "Allocations go to the memory pool ", text_of(id), " of musa:",
        static_cast<int>(device_), " already.\n",
        "Likely causes: use_mem_pool() of the same pool is nested, or two threads fill one pool at a time.\n",
        "Cure: one region per pool; give each thread a pool of its own.");
  }
  fillings_.push_back({&hold_pool(id, nullptr, lock), std::move(filter)});
}

void DeviceCachingAllocator::end_filling(MempoolId_t id) {
  std::function<bool(musaStream_t)> filter; // what it owns dies after the lock is released
  const Lock lock(mutex_);
  const auto filling = std::find_if(
      fillings_.begin(), fillings_.end(), [id](const Filling& other) { return other.pool->small.id == id; });
  TORCH_CHECK(
      filling != fillings_.end(), "No allocations go to the memory pool ", text_of(id), " of musa:",
      static_cast<int>(device_), ": beginAllocateToPool comes first.");
  filter = std::move(filling->filter);
  fillings_.erase(filling);
}

void DeviceCachingAllocator::release_pool(MempoolId_t id) {
  Lock lock(mutex_);
  MemoryPool& pool = private_pool(id);
  TORCH_CHECK(
      pool.use_count > 0, "The memory pool ", text_of(id), " of musa:", static_cast<int>(device_),
      " was released more often than it was held.");
  --pool.use_count;
  drop_unused_pools(lock);
}

int DeviceCachingAllocator::pool_use_count(MempoolId_t id) {
  const Lock lock(mutex_);
  const auto found = pools_.find(id);
  return found == pools_.end() ? 0 : found->second->use_count;
}

void DeviceCachingAllocator::set_use_on_oom(MempoolId_t id, bool value) {
  const Lock lock(mutex_);
  private_pool(id).use_on_oom = value;
}

void DeviceCachingAllocator::set_no_split(MempoolId_t id) {
  const Lock lock(mutex_);
  private_pool(id).no_split = true;
}

// The pool begun last comes first, so that the innermost of nested regions wins.
MemoryPool& DeviceCachingAllocator::filled_pool(musaStream_t stream) {
  for (auto filling = fillings_.rbegin(); filling != fillings_.rend(); ++filling) {
    if (filling->filter(stream)) {
      return *filling->pool;
    }
  }
  return *default_pool_;
}

Block* DeviceCachingAllocator::find_on_oom(const StreamPool& home, size_t size) {
  for (const auto& pool : pools_) {
    if (pool.second->use_on_oom && pool.second.get() != &home.pool.owner) {
      BlockPool& part = home.pool.is_small ? pool.second->small : pool.second->large;
      if (Block* block = find_cached(part.on(home.stream), size)) {
        count_split(block, -1);
        return block;
      }
    }
  }
  return nullptr;
}

void* DeviceCachingAllocator::segment_from_source(StreamPool& home, size_t size, Lock& lock) {
  const std::shared_ptr<MUSAAllocator> source = home.pool.owner.source;
  void* ptr = nullptr;
  std::exception_ptr failure;
  lock.unlock();
  try {
    ptr = source->raw_alloc_with_stream(size, home.stream);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
  return ptr;
}

// Without the lock.
void DeviceCachingAllocator::free_to_source(const Block& block) {
  try {
    block.home->pool.owner.source->raw_delete(block.ptr);
  } catch (const std::exception& error) {
    // As for musaFree: who knows whether the memory is still there, so it is given up.
    TORCH_WARN("The allocator of a memory pool could not free ", static_cast<void*>(block.ptr), ": ", error.what());
  }
}

// Nobody holds such a pool and no block names it.
void DeviceCachingAllocator::drop_unused_pools(Lock& lock) {
  std::vector<std::unique_ptr<MemoryPool>> unused;
  const auto has_addresses = [this](const MemoryPool& pool) {
    return std::any_of(expandable_.begin(), expandable_.end(), [&pool](const auto& segment) {
      return &segment->home().pool.owner == &pool;
    });
  };
  for (auto pool = pools_.begin(); pool != pools_.end();) {
    const MemoryPool& candidate = *pool->second;
    if (candidate.is_private() && candidate.use_count == 0 && candidate.reserved == 0 && candidate.growing == 0 &&
        !has_addresses(candidate)) {
      unused.push_back(std::move(pool->second));
      pool = pools_.erase(pool);
    } else {
      ++pool;
    }
  }
  if (!unused.empty()) {
    // The last owner of a pool's allocator may be the pool: its destructor is the user's code.
    lock.unlock();
    unused.clear();
    lock.lock();
  }
}

void DeviceCachingAllocator::free_deferred() {
  Lock lock(mutex_);
  const std::vector<Block*> blocks = std::move(deferred_);
  deferred_.clear();
  for (Block* block : blocks) {
    free_after_events(block, lock);
  }
}

} // namespace c10::musa::MUSACachingAllocator
