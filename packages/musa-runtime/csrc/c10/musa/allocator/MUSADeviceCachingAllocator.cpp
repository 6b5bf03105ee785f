// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSADeviceCachingAllocator.h>

#include <c10/musa/MUSAAllocator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAKernelGuard.h>
#include <c10/musa/allocator/MUSAAllocatorHooks.h>

#include <algorithm>
#include <array>

namespace c10::musa::MUSACachingAllocator {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
using c10::CachingAllocator::kMinLargeAlloc;
using c10::CachingAllocator::kRoundLarge;
using c10::CachingAllocator::kSmallBuffer;
using c10::CachingAllocator::kSmallSize;

constexpr size_t kAddressSpace = size_t{1} << 48;

[[noreturn]] C10_NOINLINE void fail_beyond_addresses(size_t nbytes) {
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "MUSA out of memory. Tried to allocate ", nbytes,
      " bytes, more than a device can address.\n",
      "Likely cause: a size that was computed from a negative or overflowing number.");
}

[[noreturn]] C10_NOINLINE void fail_freed_twice(const void* ptr, DeviceIndex device) {
  TORCH_CHECK(
      false, "Device memory at ", ptr, " on musa:", static_cast<int>(device), " was freed twice.\n",
      "Likely cause: two owners call the deleter for one pointer.");
}

size_t round_size(size_t nbytes) {
  if (nbytes <= kMinBlockSize) {
    return kMinBlockSize;
  }
  const size_t divisions = Config::roundup_power2_divisions(nbytes);
  if (divisions > 1 && nbytes > kMinBlockSize * divisions) {
    const size_t step = std::bit_floor(nbytes) / divisions;
    return round_up(round_up(nbytes, step), kMinBlockSize);
  }
  return round_up(nbytes, kMinBlockSize);
}

// Keeps a pool alive while an allocation from it unlocks the mutex. A filter directed the allocation to the pool, and its
// holder may release the pool in the meantime.
class Growing {
 public:
  explicit Growing(MemoryPool& pool) : pool_(pool) { ++pool_.growing; }
  ~Growing() { --pool_.growing; }
  Growing(const Growing&) = delete;
  Growing& operator=(const Growing&) = delete;

 private:
  MemoryPool& pool_;
};

std::string format_size(size_t bytes) {
  std::array<char, 32> text{};
  const char* unit = "bytes";
  double value = static_cast<double>(bytes);
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024.0) {
      break;
    }
    value /= 1024.0;
    unit = next;
  }
  const bool whole = value == static_cast<double>(static_cast<size_t>(value));
  std::snprintf(text.data(), text.size(), whole ? "%.0f %s" : "%.2f %s", value, unit);
  return text.data();
}

} // namespace

DeviceCachingAllocator::DeviceCachingAllocator(DeviceIndex device)
    : cache_(device), segments_(cache_), pending_([this](Block* block) {
        cache_.stats.on_finished(block->home->pool.stat_type(), block->size, block->requested);
        return_to_pool(block);
      }) {}

// ---- allocation

void* DeviceCachingAllocator::malloc(size_t nbytes, musaStream_t stream) {
  const bool reporting = memoryProfilingEnabled();
  const TraceScope scope(cache_.trace, RecordContext::STATE);
  if (C10_UNLIKELY(nbytes >= kAddressSpace)) {
    fail_beyond_addresses(nbytes);
  }
  const size_t size = isEnabled() ? round_size(nbytes) : nbytes;

  Lock lock(mutex_);
  if (C10_UNLIKELY(!pending_.empty())) {
    pending_.process(PendingFrees::Wait::No, lock);
  }
  MemoryPool& pool = cache_.pools.filled_by(stream);
  StreamPool& home = (size <= kSmallSize ? pool.small : pool.large).on(stream);
  Block* block = find_cached(home, size);
  size_t split_bytes = 0;
  if (C10_LIKELY(block != nullptr)) {
    split_bytes = block->whole_segment() ? 0 : block->size;
  } else {
    block = grow(home, size, nbytes, lock);
  }
  hand_out(block, size, nbytes, split_bytes);
  void* ptr = block->ptr;
  if (C10_UNLIKELY(cache_.trace.on())) {
    cache_.trace.allocated(ptr, nbytes, stream, block->home->pool.id);
  }
  if (C10_UNLIKELY(reporting)) {
    const size_t allocated = cache_.stats.allocated_bytes();
    const size_t reserved = cache_.stats.reserved_bytes();
    const auto block_size = static_cast<int64_t>(block->size);
    lock.unlock();
    report(ptr, block_size, allocated, reserved);
  }
  return ptr;
}

// Takes the best fit out of its bin. The statistics still count it as split if it is a part of its segment.
Block* DeviceCachingAllocator::find_cached(StreamPool& home, size_t size) {
  if (C10_UNLIKELY(!isEnabled())) {
    return nullptr;
  }
  Block* block = home.free.best_fit(size);
  if (block == nullptr) {
    return nullptr;
  }
  if (!home.pool.is_small) {
    // Blocks of max_split_size and more are never split, so they serve only requests of about their size.
    const size_t max_split = home.pool.owner.no_split ? 0 : Config::max_split_size();
    if (block->size >= max_split && (size < max_split || block->size - size >= Config::max_non_split_rounding_size()) &&
        block->expandable == nullptr) {
      return nullptr;
    }
  }
  home.free.remove(block);
  return block;
}

// Makes room for a request that no cached block serves. The block is no longer counted as split.
Block* DeviceCachingAllocator::grow(StreamPool& home, size_t size, size_t nbytes, Lock& lock) {
  const MUSAKernelGuard guard(cache_.device);
  const Growing growing(home.pool.owner);
  const size_t segment = segments_.size_for(home.pool.owner, size);
  const auto cached = [&] {
    Block* block = find_cached(home, size);
    cache_.count_split(block, -1);
    return block;
  };
  lock.unlock();
  const bool reclaimed = reclaim();
  lock.lock();
  if (reclaimed) {
    if (Block* block = cached()) {
      return block;
    }
  }
  segments_.collect_garbage(segment, lock);
  if (Block* block = segments_.add(home, segment, lock)) {
    return block;
  }
  if (!capture_in_progress()) {
    cache_.stats.on_retry();
    segments_.release_to_fit(segment, lock);
    if (Block* block = segments_.add(home, segment, lock)) {
      return block;
    }
    cache_.stats.on_synchronize();
    pending_.process(PendingFrees::Wait::Yes, lock);
    // The mutex was unlocked: memory freed by other threads or by events may serve now.
    if (Block* block = cached()) {
      return block;
    }
    segments_.release_all(lock);
    if (Block* block = segments_.add(home, segment, lock)) {
      return block;
    }
  }
  if (Block* block = find_on_oom(home, size)) {
    return block;
  }
  out_of_memory(home, nbytes, segment, lock);
}

// Takes a block from a pool that serves other requests before these run out of memory.
Block* DeviceCachingAllocator::find_on_oom(const StreamPool& home, size_t size) {
  Block* found = nullptr;
  cache_.pools.for_each([&](MemoryPool& pool) {
    if (found == nullptr && pool.use_on_oom && &pool != &home.pool.owner) {
      found = find_cached((home.pool.is_small ? pool.small : pool.large).on(home.stream), size);
      cache_.count_split(found, -1);
    }
  });
  return found;
}

// Cuts a block that is in no bin to size and marks it as allocated.
void DeviceCachingAllocator::hand_out(Block* block, size_t size, size_t nbytes, size_t split_bytes) {
  StreamPool& home = *block->home;
  const StatType type = home.pool.stat_type();
  int64_t new_splits = split_bytes != 0 ? -1 : 0;
  int64_t new_split_bytes = -static_cast<int64_t>(split_bytes);
  const size_t remaining = block->size - size;
  // The remainder of a large block is split off only if large requests can use it; small requests have their own pool. In
  // an expandable segment it joins the pages mapped behind it.
  const bool split = home.pool.is_small || block->expandable != nullptr
      ? remaining >= kMinBlockSize
      : remaining > kSmallSize && size < Config::max_split_size();
  if (split && isEnabled() && !home.pool.owner.no_split) {
    Block* rest = cache_.blocks.cut(block, size);
    rest->freed_at = cache_.allocations;
    home.free.insert(rest);
    ++new_splits;
    new_split_bytes += static_cast<int64_t>(remaining);
  }
  cache_.blocks.enter(block);
  block->allocated = true;
  block->requested = nbytes;
  ++cache_.allocations;
  cache_.stats.on_split_change(type, new_splits, new_split_bytes);
  cache_.stats.on_allocate(type, block->size, nbytes);
  if (!home.pool.is_small && block->size >= Config::max_split_size()) {
    block->oversize = true;
    cache_.stats.on_oversize_allocation(1);
  }
}

// ---- free

bool DeviceCachingAllocator::free(void* ptr) {
  const bool reporting = memoryProfilingEnabled();
  const TraceScope scope(cache_.trace, RecordContext::ALL);
  Lock lock(mutex_);
  Block* block = cache_.blocks.find(ptr);
  if (block == nullptr) {
    return false;
  }
  if (C10_UNLIKELY(!block->allocated)) {
    fail_freed_twice(ptr, cache_.device);
  }
  const size_t size = block->size;
  if (C10_UNLIKELY(cache_.trace.on())) {
    cache_.trace.record(TraceEntry::FREE_REQUESTED, ptr, block->requested, block->home->stream, block->home->pool.id);
  }
  block->allocated = false;
  const StatType type = block->home->pool.stat_type();
  const bool used_elsewhere = !block->stream_uses.empty();
  if (C10_UNLIKELY(used_elsewhere)) {
    cache_.stats.on_pending(type, size);
  } else {
    cache_.stats.on_free(type, size, block->requested);
  }
  if (C10_UNLIKELY(block->oversize)) {
    block->oversize = false;
    cache_.stats.on_oversize_allocation(-1);
  }
  size_t allocated = 0;
  size_t reserved = 0;
  if (C10_UNLIKELY(reporting)) {
    allocated = cache_.stats.allocated_bytes();
    reserved = cache_.stats.reserved_bytes();
  }
  if (C10_UNLIKELY(used_elsewhere)) {
    pending_.add(block, lock);
  } else {
    return_to_pool(block);
  }
  if (C10_UNLIKELY(!isEnabled()) && !capture_in_progress()) {
    segments_.release_all(lock);
  }
  lock.unlock();
  if (C10_UNLIKELY(reporting)) {
    report(ptr, -static_cast<int64_t>(size), allocated, reserved);
  }
  return true;
}

void DeviceCachingAllocator::return_to_pool(Block* block) {
  StreamPool& home = *block->home;
  const StatType type = home.pool.stat_type();
  if (C10_UNLIKELY(cache_.trace.on())) {
    cache_.trace.free_completed(block->ptr, block->requested, home.stream, home.pool.id);
  }
  block->requested = 0;

  const size_t size = block->size;
  const bool joins_next = block->next != nullptr && block->next->available();
  const bool joins_prev = block->prev != nullptr && block->prev->available();
  block = cache_.blocks.merge(block);
  const bool part = !block->whole_segment();
  cache_.stats.on_split_change(
      type, int64_t{part} - joins_next - joins_prev,
      static_cast<int64_t>(part ? block->size : 0) - static_cast<int64_t>(block->size - size));
  block->freed_at = cache_.allocations;
  home.free.insert(block);
}

bool DeviceCachingAllocator::record_stream(void* ptr, MUSAStream stream) {
  const musaStream_t handle = stream.stream();
  Lock lock(mutex_);
  Block* block = cache_.blocks.find_allocated(ptr);
  if (block == nullptr) {
    return false;
  }
  if (stream.device_index() == cache_.device && handle == block->home->stream) {
    return true; // stream order protects it already
  }
  if (std::find(block->stream_uses.begin(), block->stream_uses.end(), stream) == block->stream_uses.end()) {
    block->stream_uses.push_back(stream);
  }
  return true;
}

void DeviceCachingAllocator::allow_peer(DeviceIndex peer) {
  const Lock lock(mutex_);
  segments_.allow_peer(peer);
}

void DeviceCachingAllocator::empty_cache(MempoolId_t id) {
  const TraceScope scope(cache_.trace, RecordContext::ALL);
  Lock lock(mutex_);
  if (capture_in_progress()) {
    return;
  }
  cache_.stats.on_synchronize();
  pending_.process(PendingFrees::Wait::Yes, lock);
  if (id == MempoolId_t{0, 0}) {
    segments_.release_all(lock);
  } else {
    segments_.release_pool(id, lock);
  }
}

void DeviceCachingAllocator::out_of_memory(const StreamPool& home, size_t nbytes, size_t segment, Lock& lock) {
  cache_.stats.on_out_of_memory();
  const size_t allocated = cache_.stats.allocated_bytes();
  const size_t reserved = cache_.stats.reserved_bytes();
  const size_t largest = cache_.pools.largest_free_block();
  const double fraction = cache_.limit.fraction();
  const size_t in_private_pools = cache_.stats.reserved_by_private_pools();
  lock.unlock();

  size_t free_bytes = 0;
  size_t total_bytes = 0;
  C10_MUSA_IGNORE_ERROR(musaMemGetInfo(&free_bytes, &total_bytes));
  lock.lock();
  cache_.trace.record(TraceEntry::OOM, reinterpret_cast<const void*>(free_bytes), nbytes, home.stream, home.pool.id);
  lock.unlock();
  trace::notify_out_of_memory(cache_.device, nbytes, total_bytes, free_bytes);
  const std::string limit_text = fraction < 1.0
      ? c10::str(
            "\nThis process is limited to ", fraction, " of the device, ",
            format_size(static_cast<size_t>(fraction * static_cast<double>(total_bytes))), ".")
      : std::string();
  const std::string pools_text = in_private_pools > 0
      ? c10::str(" (", format_size(in_private_pools), " of it for graphs and MemPools)")
      : std::string();
  const char* capture_text =
      capture_in_progress() ? "\nA graph is being captured: until that ends, the cache cannot give memory back." : "";
  if (memoryProfilingEnabled()) {
    reportOutOfMemoryToProfiler(
        static_cast<int64_t>(nbytes), allocated, reserved, Device(DeviceType::PrivateUse1, cache_.device));
  }
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "MUSA out of memory. Tried to allocate ", format_size(nbytes), " (a segment of ",
      format_size(segment), ") on musa:", static_cast<int>(cache_.device), ".\n", "Device: ", format_size(total_bytes),
      " total, ", format_size(free_bytes), " free. ", "This process: ", format_size(allocated),
      " allocated by tensors, ", format_size(reserved), " reserved by the caching allocator", pools_text,
      ", largest free block in the cache ", format_size(largest), ".", limit_text, capture_text,
      "\nLikely causes, in order: the tensors alive need this much; the cache is fragmented (reserved is far above "
      "allocated); another process holds the memory (reserved is far below total - free).\n",
      "Fix: use a smaller batch; drop references to tensors and call torch.musa.empty_cache(); against fragmentation "
      "set PYTORCH_ALLOC_CONF=expandable_segments:True.");
}

void DeviceCachingAllocator::report(void* ptr, int64_t size, size_t allocated, size_t reserved) const {
  reportMemoryUsageToProfiler(ptr, size, allocated, reserved, Device(DeviceType::PrivateUse1, cache_.device));
}

// ---- private pools

void DeviceCachingAllocator::begin_filling(MempoolId_t id, std::function<bool(musaStream_t)> filter) {
  const Lock lock(mutex_); // unlocked before `filter` is destroyed, which may run user code
  cache_.pools.begin_filling(id, std::move(filter));
}

void DeviceCachingAllocator::end_filling(MempoolId_t id) {
  MemoryPools::Filter filter; // its captured objects are destroyed after the mutex is unlocked
  const Lock lock(mutex_);
  filter = cache_.pools.end_filling(id);
}

void DeviceCachingAllocator::hold_pool(MempoolId_t id, std::shared_ptr<MUSAAllocator> source) {
  const Lock lock(mutex_); // unlocked before `source` is destroyed
  cache_.pools.hold(id, source);
}

void DeviceCachingAllocator::release_pool(MempoolId_t id) {
  Lock lock(mutex_);
  cache_.pools.release(id);
  segments_.drop_unused_pools(lock);
}

int DeviceCachingAllocator::pool_use_count(MempoolId_t id) {
  const Lock lock(mutex_);
  return cache_.pools.use_count(id);
}

void DeviceCachingAllocator::set_use_on_oom(MempoolId_t id, bool value) {
  const Lock lock(mutex_);
  cache_.pools.set_use_on_oom(id, value);
}

void DeviceCachingAllocator::set_no_split(MempoolId_t id) {
  const Lock lock(mutex_);
  cache_.pools.set_no_split(id);
}

void DeviceCachingAllocator::free_deferred() {
  Lock lock(mutex_);
  pending_.add_deferred(lock);
}

} // namespace c10::musa::MUSACachingAllocator
