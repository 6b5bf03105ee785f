// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSASegments.h>

#include <c10/musa/allocator/MUSAAllocatorEvents.h>
#include <c10/musa/MUSAAllocator.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSAStreamPool.h>

#include <algorithm>
#include <exception>
#include <unordered_set>

namespace c10::musa::MUSACachingAllocator {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
using c10::CachingAllocator::kMinLargeAlloc;
using c10::CachingAllocator::kRoundLarge;
using c10::CachingAllocator::kSmallBuffer;
using c10::CachingAllocator::kSmallSize;

size_t segment_size(size_t size) {
  if (!isEnabled()) {
    return size;
  }
  if (size <= kSmallSize) {
    return kSmallBuffer;
  }
  if (size < kMinLargeAlloc) {
    return std::max(Config::large_segment_size(), round_up(size, kRoundLarge));
  }
  return round_up(size, kRoundLarge);
}

} // namespace

size_t Segments::size_for(const MemoryPool& pool, size_t size) {
  // The pages of an expandable segment round enough.
  const bool exact = pool.no_split || (pages_.enabled() && pool.source == nullptr);
  return exact ? size : segment_size(size);
}

Block* Segments::add(StreamPool& home, size_t size, Lock& lock) {
  MemoryPool& owner = home.pool.owner;
  if (pages_.enabled() && owner.source == nullptr && !owner.no_split) {
    if (const auto block = pages_.add(home, size)) {
      return *block;
    }
    size = segment_size(size);
  }
  if (cache_.limit.forbids(cache_.stats.reserved_bytes() + size)) {
    return nullptr;
  }
  void* ptr = nullptr;
  if (C10_UNLIKELY(owner.source != nullptr) && (ptr = from_source(home, size, lock)) == nullptr) {
    return nullptr;
  }
  Block* block = cache_.blocks.take();
  const musaError_t error = ptr != nullptr ? musaSuccess : relaxed([&] { return musaMalloc(&ptr, size); });
  if (error != musaSuccess) {
    cache_.blocks.give(block);
    if (error == musaErrorMemoryAllocation) {
      C10_MUSA_CLEAR_ERROR();
      return nullptr;
    }
    throw_musa_error(error, "musaMalloc(&ptr, size)", __func__, __FILE__, __LINE__);
  }
  block->ptr = static_cast<char*>(ptr);
  block->size = size;
  block->home = &home;
  cache_.blocks.enter(block);
  cache_.count_reserved(*block, 1);
  if (size >= Config::max_split_size()) {
    block->oversize_segment = true;
    cache_.stats.on_oversize_segment(1);
  }
  cache_.trace.segment_came(TraceEntry::SEGMENT_ALLOC, ptr, size, home.stream, home.pool.id);
  return block;
}

void* Segments::from_source(StreamPool& home, size_t size, Lock& lock) {
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

void Segments::give_to_source(const Block& block) {
  try {
    block.home->pool.owner.source->raw_delete(block.ptr);
  } catch (const std::exception& error) {
    // As for musaFree: whether the memory still exists is unknown, so it is never allocated again.
    TORCH_WARN("The allocator of a memory pool could not free ", static_cast<void*>(block.ptr), ": ", error.what());
  }
}

// A detached segment is in no bin and not in the map: while the mutex is unlocked no thread can reach it, and the SDK may
// return its address again.
template <typename Select>
std::vector<Block*> Segments::detach_if(Select select) {
  std::vector<Block*> segments;
  cache_.pools.for_each([&](const MemoryPool& pool) {
    if (!pool.may_release()) {
      return;
    }
    for (const BlockPool* part : {&pool.small, &pool.large}) {
      for (const auto& home : part->streams) {
        home->free.for_each([&](Block* block) {
          if (is_releasable(*block) && select(*block)) {
            segments.push_back(block);
          }
        });
      }
    }
  });
  for (Block*& block : segments) {
    if (block->expandable != nullptr) {
      block = pages_.detach(block);
    } else {
      block->home->free.remove(block);
      cache_.blocks.erase(block);
    }
  }
  return segments;
}

// Work queued before the free may still use the memory: the cache relied on the order of the segment's stream, the SDK does
// not. Returns musaErrorNotReady if a capture is in progress.
musaError_t Segments::finish_work(const std::vector<Block*>& segments, const char** call) const {
  std::unordered_set<musaStream_t> streams;
  bool own = true;
  for (const Block* block : segments) {
    streams.insert(block->home->stream);
    own = own && is_own_stream(block->home->stream, cache_.device);
  }
  std::vector<musaEvent_t> events;
  musaError_t error = musaSuccess;
  {
    const auto between = BetweenCaptures::enter();
    if (!between) {
      return musaErrorNotReady;
    }
    if (!own) {
      // The program may have destroyed its stream, so only the device can be synchronized. No interaction mode permits that
      // during a capture, so captures of other threads wait for it.
      const CurrentDevice current(cache_.device);
      *call = current.error() == musaSuccess ? "musaDeviceSynchronize()" : "musaSetDevice(device)";
      return current.error() == musaSuccess ? musaDeviceSynchronize() : current.error();
    }
    for (auto stream = streams.begin(); stream != streams.end() && error == musaSuccess; ++stream) {
      musaEvent_t event = nullptr;
      error = record_event(*between, cache_.device, *stream, &event, call);
      if (error == musaSuccess) {
        events.push_back(event);
      }
    }
  }
  for (const musaEvent_t event : events) {
    if (error == musaSuccess) {
      *call = "musaEventSynchronize(event)";
      error = wait_for_event(event);
    }
    recycle_event(cache_.device, event);
  }
  return error;
}

void Segments::release(std::vector<Block*> segments, Lock& lock) {
  if (segments.empty()) {
    return;
  }
  // Before the mutex is unlocked: another thread may get the same address from the SDK and record that first.
  for (const Block* block : segments) {
    const auto action = block->expandable != nullptr ? TraceEntry::SEGMENT_UNMAP : TraceEntry::SEGMENT_FREE;
    cache_.trace.segment_went(action, block->ptr, block->size, block->home->stream, block->home->pool.id);
  }
  size_t freed = 0;
  const char* call = nullptr;
  lock.unlock();
  musaError_t error = finish_work(segments, &call);
  if (error == musaSuccess) {
    // Frees may wait for the whole device, so they hold no BetweenCaptures.
    const WaitPermit permit;
    const CurrentDevice current(cache_.device);
    call = "musaSetDevice(device)";
    error = permit.granted() ? current.error() : musaErrorNotReady;
    while (error == musaSuccess && freed < segments.size()) {
      error = free_segment(*segments[freed], &call);
      // Also after a failure: whether the SDK still holds that memory is unknown, so it is never allocated again.
      ++freed;
    }
  }
  if (error == musaErrorNotReady) {
    error = musaSuccess; // a capture is in progress
  }
  if (is_unloading(error)) {
    C10_MUSA_CLEAR_ERROR();
    error = musaSuccess;
    freed = segments.size();
  }
  lock.lock();
  for (size_t i = 0; i < segments.size(); ++i) {
    Block* block = segments[i];
    if (i >= freed) {
      const auto action = block->expandable != nullptr ? TraceEntry::SEGMENT_MAP : TraceEntry::SEGMENT_ALLOC;
      cache_.trace.segment_came(action, block->ptr, block->size, block->home->stream, block->home->pool.id);
      reattach(block);
      continue;
    }
    if (block->expandable != nullptr) {
      const musaError_t left = pages_.finish(block);
      if (error == musaSuccess && !is_unloading(left)) {
        call = "muMemAddressFree(base, size)";
        error = left;
      }
      continue;
    }
    cache_.count_released(*block, -1);
    if (block->oversize_segment) {
      cache_.stats.on_oversize_segment(-1);
    }
    cache_.blocks.give(block);
  }
  drop_unused_pools(lock);
  if (error != musaSuccess) {
    throw_musa_error(error, call, __func__, __FILE__, __LINE__);
  }
}

void Segments::release_all(Lock& lock) {
  release(detach_if([](const Block&) { return true; }), lock);
}

void Segments::release_pool(MempoolId_t id, Lock& lock) {
  release(detach_if([id](const Block& block) { return block.home->pool.id == id; }), lock);
}

void Segments::release_to_fit(size_t size, Lock& lock) {
  std::vector<Block*> candidates = detach_if([](const Block&) { return true; });
  std::sort(candidates.begin(), candidates.end(), [](const Block* a, const Block* b) { return a->size < b->size; });
  const auto fitting =
      std::find_if(candidates.begin(), candidates.end(), [size](const Block* block) { return block->size >= size; });
  std::vector<Block*> chosen;
  if (fitting != candidates.end()) {
    chosen.push_back(*fitting);
    candidates.erase(fitting);
  } else {
    for (size_t sum = 0; sum < size && !candidates.empty();) {
      sum += candidates.back()->size;
      chosen.push_back(candidates.back());
      candidates.pop_back();
    }
  }
  for (Block* block : candidates) {
    reattach(block);
  }
  release(std::move(chosen), lock);
}

void Segments::collect_garbage(size_t size, Lock& lock) {
  const double threshold = Config::garbage_collection_threshold();
  if (C10_LIKELY(threshold <= 0.0) || capture_in_progress()) {
    return;
  }
  const auto target = static_cast<size_t>(threshold * static_cast<double>(cache_.limit.bytes()));
  const size_t reserved = cache_.stats.reserved_bytes() + size;
  if (reserved <= target) {
    return;
  }
  std::vector<std::pair<uint64_t, size_t>> idle; // (freed at, bytes), the oldest first
  uint64_t age_sum = 0;
  const uint64_t now = cache_.allocations;
  for (const auto& home : cache_.pools.default_pool().large.streams) {
    home->free.for_each([&](const Block* block) {
      if (is_releasable(*block)) {
        idle.emplace_back(block->freed_at, block->size);
        age_sum += now - block->freed_at;
      }
    });
  }
  if (idle.empty()) {
    return;
  }
  std::sort(idle.begin(), idle.end());
  const uint64_t average = age_sum / idle.size();
  size_t excess = reserved - target;
  uint64_t last = 0;
  for (const auto& [freed_at, bytes] : idle) {
    if (excess == 0 || now - freed_at < average) {
      break;
    }
    excess -= std::min(excess, bytes);
    last = freed_at;
  }
  release(detach_if([last](const Block& block) { return !block.home->pool.is_small && block.freed_at <= last; }), lock);
}

void Segments::reattach(Block* block) {
  if (block->expandable != nullptr) {
    pages_.restore(block);
    return;
  }
  cache_.blocks.enter(block);
  block->home->free.insert(block);
}

musaError_t Segments::free_segment(const Block& block, const char** call) {
  if (block.expandable != nullptr) {
    const auto [first, count] = block.expandable->pages_of(block);
    const DriverOutcome outcome = block.expandable->unmap(first, count);
    *call = outcome.call;
    return static_cast<musaError_t>(outcome.error); // the driver's codes equal the runtime's
  }
  if (block.home->pool.owner.source != nullptr) {
    give_to_source(block);
    return musaSuccess;
  }
  *call = "musaFree(segment)";
  return musaFree(block.ptr);
}

void Segments::drop_unused_pools(Lock& lock) {
  auto unused = cache_.pools.take_unused([this](const MemoryPool& pool) { return pages_.has_addresses_of(pool); });
  if (!unused.empty()) {
    for (const auto& pool : unused) {
      cache_.stats.forget_private_pool(pool->small.id);
    }
    // The pool may be the last owner of its allocator, whose destructor is user code.
    lock.unlock();
    unused.clear();
    lock.lock();
  }
}

} // namespace c10::musa::MUSACachingAllocator
