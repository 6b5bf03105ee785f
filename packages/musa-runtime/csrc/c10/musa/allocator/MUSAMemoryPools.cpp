// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSAMemoryPools.h>

#include <algorithm>

namespace c10::musa::MUSACachingAllocator {
namespace {

std::string text_of(MempoolId_t id) { return c10::str("(", id.first, ", ", id.second, ")"); }

} // namespace

MemoryPools::MemoryPools(DeviceIndex device)
    : device_(device),
      default_pool_(
          pools_.emplace(MempoolId_t{0, 0}, std::make_unique<MemoryPool>(MempoolId_t{0, 0})).first->second.get()) {}

size_t MemoryPools::largest_free_block() const {
  size_t largest = 0;
  for_each([&largest](const MemoryPool& pool) {
    for (const BlockPool* part : {&pool.small, &pool.large}) {
      for (const auto& home : part->streams) {
        largest = std::max(largest, home->free.largest());
      }
    }
  });
  return largest;
}

MemoryPool& MemoryPools::private_pool(MempoolId_t id) {
  const auto found = pools_.find(id);
  TORCH_CHECK(
      found != pools_.end() && found->second->is_private(), "musa:", static_cast<int>(device_),
      " has no private memory pool ", text_of(id), ".\n",
      "Likely causes: its last holder (graph or MemPool) has released it, or the id is of another device.");
  return *found->second;
}

MemoryPool& MemoryPools::hold(MempoolId_t id, const std::shared_ptr<MUSAAllocator>& source) {
  TORCH_CHECK(id != (MempoolId_t{0, 0}), "(0, 0) is the default memory pool, not a private one.");
  auto& pool = pools_[id];
  if (pool == nullptr) {
    pool = std::make_unique<MemoryPool>(id);
    pool->source = source;
  } else {
    TORCH_CHECK(
        source == nullptr || source == pool->source, "The memory pool ", text_of(id),
        " of musa:", static_cast<int>(device_), " exists and takes its memory from another allocator.\n",
        "Fix: name the allocator when the pool is made, or make another pool.");
  }
  ++pool->use_count;
  return *pool;
}

void MemoryPools::begin_filling(MempoolId_t id, Filter&& filter) {
  TORCH_CHECK(filter != nullptr, "The filter that selects the streams of a memory pool must not be empty.");
  for (const Filling& filling : fillings_) {
    TORCH_CHECK(
        filling.pool->small.id != id, "Allocations already go to the memory pool ", text_of(id),
        " of musa:", static_cast<int>(device_), ".\n",
        "Likely causes: use_mem_pool() of the same pool is nested, or two threads fill one pool at a time.\n",
        "Fix: one region per pool; give each thread a pool of its own.");
  }
  fillings_.push_back({&hold(id, nullptr), std::move(filter)});
}

MemoryPools::Filter MemoryPools::end_filling(MempoolId_t id) {
  const auto filling = std::find_if(
      fillings_.begin(), fillings_.end(), [id](const Filling& other) { return other.pool->small.id == id; });
  TORCH_CHECK(
      filling != fillings_.end(), "No allocations go to the memory pool ", text_of(id),
      " of musa:", static_cast<int>(device_), ": beginAllocateToPool comes first.");
  Filter filter = std::move(filling->filter);
  fillings_.erase(filling);
  return filter;
}

void MemoryPools::release(MempoolId_t id) {
  MemoryPool& pool = private_pool(id);
  TORCH_CHECK(
      pool.use_count > 0, "The memory pool ", text_of(id), " of musa:", static_cast<int>(device_),
      " was released more often than it was held.");
  --pool.use_count;
}

int MemoryPools::use_count(MempoolId_t id) const {
  const auto found = pools_.find(id);
  return found == pools_.end() ? 0 : found->second->use_count;
}

void MemoryPools::set_use_on_oom(MempoolId_t id, bool value) { private_pool(id).use_on_oom = value; }

void MemoryPools::set_no_split(MempoolId_t id) { private_pool(id).no_split = true; }

MemoryPool& MemoryPools::find_filled_by(musaStream_t stream) {
  for (auto filling = fillings_.rbegin(); filling != fillings_.rend(); ++filling) {
    if (filling->filter(stream)) {
      return *filling->pool;
    }
  }
  return *default_pool_;
}

} // namespace c10::musa::MUSACachingAllocator
