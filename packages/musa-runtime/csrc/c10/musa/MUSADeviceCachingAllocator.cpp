// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSADeviceCachingAllocator.h>

#include <c10/musa/MUSAAllocatorEvents.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>

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
      OutOfMemoryError, false,
      "MUSA out of memory. Tried to allocate ", nbytes, " bytes, more than a device can address.\n",
      "Likely cause: a size that was computed from a negative or overflowing number.");
}

[[noreturn]] C10_NOINLINE void fail_freed_twice(const void* ptr, DeviceIndex device) {
  TORCH_CHECK(
      false, "Device memory at ", ptr, " on musa:", static_cast<int>(device), " was freed twice.\n",
      "Likely cause: two owners call the deleter for one pointer.");
}

size_t round_up(size_t size, size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
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

// The SDK has gone, at process exit: memory went with it.
bool is_unloading(musaError_t error) {
  return error == musaErrorMusartUnloading;
}

// Keeps a pool alive while an allocation from it has the lock open. A filter sent the allocation here, and whoever filled
// the pool may let go of it meanwhile.
class Growing {
 public:
  explicit Growing(MemoryPool& pool) : pool_(pool) {
    ++pool_.growing;
  }
  ~Growing() {
    --pool_.growing;
  }
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
    : device_(device),
      default_pool_(
          pools_.emplace(MempoolId_t{0, 0}, std::make_unique<MemoryPool>(MempoolId_t{0, 0})).first->second.get()),
      trace_(device) {}

// ---- allocation

BlockPool& DeviceCachingAllocator::pool_for(size_t size, musaStream_t stream) {
  MemoryPool& pool = C10_LIKELY(fillings_.empty()) ? *default_pool_ : filled_pool(stream);
  return size <= kSmallSize ? pool.small : pool.large;
}

void* DeviceCachingAllocator::malloc(size_t nbytes, musaStream_t stream) {
  const bool reporting = memoryProfilingEnabled();
  const TraceScope scope(trace_, RecordContext::STATE);
  if (C10_UNLIKELY(nbytes >= kAddressSpace)) {
    fail_beyond_addresses(nbytes);
  }
  const size_t size = isEnabled() ? round_size(nbytes) : nbytes;

  Lock lock(mutex_);
  if (C10_UNLIKELY(!events_.empty())) {
    process_events(Wait::No, lock);
  }
  StreamPool& home = pool_for(size, stream).on(stream);
  Block* block = find_cached(home, size);
  size_t split_bytes = 0;
  if (C10_LIKELY(block != nullptr)) {
    split_bytes = block->whole_segment() ? 0 : block->size;
  } else {
    block = grow(home, size, nbytes, lock);
  }
  hand_out(block, size, nbytes, split_bytes);
  void* ptr = block->ptr;
  if (C10_UNLIKELY(trace_.on())) {
    trace_.allocated(ptr, nbytes, stream, block->home->pool.id);
  }
  if (C10_UNLIKELY(reporting)) {
    const size_t allocated = stats_.allocated_bytes();
    const size_t reserved = stats_.reserved_bytes();
    const auto block_size = static_cast<int64_t>(block->size);
    lock.unlock();
    report(ptr, block_size, allocated, reserved);
  }
  return ptr;
}

// Takes the best fit out of its bin. The statistics still count it among the split blocks where it is a part of its segment.
Block* DeviceCachingAllocator::find_cached(StreamPool& home, size_t size) {
  if (C10_UNLIKELY(!isEnabled())) {
    return nullptr;
  }
  Block* block = home.free.best_fit(size);
  if (block == nullptr) {
    return nullptr;
  }
  if (!home.pool.is_small) {
    // Blocks of max_split_size and more are never split; so one is given only to a request of about its size.
    const size_t max_split = home.pool.owner.no_split ? 0 : Config::max_split_size();
    if (block->size >= max_split &&
        (size < max_split || block->size - size >= Config::max_non_split_rounding_size()) &&
        block->expandable == nullptr) {
      return nullptr;
    }
  }
  home.free.remove(block);
  return block;
}

// Makes room for a request that no cached block serves. The block counts among the split blocks no longer.
Block* DeviceCachingAllocator::grow(StreamPool& home, size_t size, size_t nbytes, Lock& lock) {
  const MUSAGuard guard(device_);
  const Growing growing(home.pool.owner);
  const MemoryPool& owner = home.pool.owner;
  // Pages of an expandable segment are rounding enough.
  const bool exact = owner.no_split || (expands() && owner.source == nullptr);
  const size_t segment = exact ? size : segment_size(size);
  const auto cached = [&] {
    Block* block = find_cached(home, size);
    count_split(block, -1);
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
  collect_garbage(segment, lock);
  if (Block* block = new_segment(home, segment, lock)) {
    return block;
  }
  if (!capture_in_progress()) {
    stats_.on_retry();
    release_to_fit(segment, lock);
    if (Block* block = new_segment(home, segment, lock)) {
      return block;
    }
    stats_.on_synchronize();
    process_events(Wait::Yes, lock);
    // The lock was open: memory that other threads freed, or that the events gave back, may serve now.
    if (Block* block = cached()) {
      return block;
    }
    release(detach_segments([](const Block&) { return true; }), lock);
    if (Block* block = new_segment(home, segment, lock)) {
      return block;
    }
  }
  if (Block* block = find_on_oom(home, size)) {
    return block;
  }
  out_of_memory(home, nbytes, segment, lock);
}

void DeviceCachingAllocator::count_reserved(const Block& block, int64_t segments) {
  const BlockPool& pool = block.home->pool;
  stats_.on_reserve(pool.stat_type(), pool.id, block.size, segments);
  pool.owner.reserved += block.size;
}

void DeviceCachingAllocator::count_released(const Block& block, int64_t segments) {
  const BlockPool& pool = block.home->pool;
  stats_.on_release(pool.stat_type(), pool.id, block.size, segments);
  pool.owner.reserved -= block.size;
}

// Null when the device, or the limit, has no room.
Block* DeviceCachingAllocator::new_segment(StreamPool& home, size_t size, Lock& lock) {
  MemoryPool& owner = home.pool.owner;
  if (expands() && owner.source == nullptr && !owner.no_split) {
    if (const auto block = expand(home, size)) {
      return *block;
    }
    size = segment_size(size);
  }
  if (fraction_ < 1.0 && stats_.reserved_bytes() + size > limit()) {
    return nullptr;
  }
  void* ptr = nullptr;
  if (C10_UNLIKELY(owner.source != nullptr) && (ptr = segment_from_source(home, size, lock)) == nullptr) {
    return nullptr;
  }
  Block* block = store_.take();
  const musaError_t error = ptr != nullptr ? musaSuccess : relaxed([&] { return musaMalloc(&ptr, size); });
  if (error != musaSuccess) {
    store_.give(block);
    if (error == musaErrorMemoryAllocation) {
      C10_MUSA_CLEAR_ERROR();
      return nullptr;
    }
    throw_musa_error(error, "musaMalloc(&ptr, size)", __func__, __FILE__, __LINE__);
  }
  block->ptr = static_cast<char*>(ptr);
  block->size = size;
  block->home = &home;
  register_block(block);
  count_reserved(*block, 1);
  if (size >= Config::max_split_size()) {
    block->oversize_segment = true;
    stats_.on_oversize_segment(1);
  }
  trace_.segment_came(TraceEntry::SEGMENT_ALLOC, ptr, size, home.stream, home.pool.id);
  return block;
}

// Cuts a block that is in no bin to size and marks it allocated.
void DeviceCachingAllocator::hand_out(Block* block, size_t size, size_t nbytes, size_t split_bytes) {
  StreamPool& home = *block->home;
  const StatType type = home.pool.stat_type();
  int64_t new_splits = split_bytes != 0 ? -1 : 0;
  int64_t new_split_bytes = -static_cast<int64_t>(split_bytes);
  const size_t remaining = block->size - size;
  // A remainder of a large block that only small requests could use is not worth splitting off: those have their pool.
  // In an expandable segment it joins the pages that come to lie behind it.
  const bool split = home.pool.is_small || block->expandable != nullptr
      ? remaining >= kMinBlockSize
      : remaining > kSmallSize && size < Config::max_split_size();
  if (split && isEnabled() && !home.pool.owner.no_split) {
    Block* rest = cut(block, size);
    rest->freed_at = allocations_;
    home.free.insert(rest);
    ++new_splits;
    new_split_bytes += static_cast<int64_t>(remaining);
  }
  register_block(block);
  block->allocated = true;
  block->requested = nbytes;
  ++allocations_;
  stats_.on_split_change(type, new_splits, new_split_bytes);
  stats_.on_allocate(type, block->size, nbytes);
  if (!home.pool.is_small && block->size >= Config::max_split_size()) {
    block->oversize = true;
    stats_.on_oversize_allocation(1);
  }
}

// ---- free

bool DeviceCachingAllocator::free(void* ptr) {
  const bool reporting = memoryProfilingEnabled();
  const TraceScope scope(trace_, RecordContext::ALL);
  Lock lock(mutex_);
  const auto found = blocks_.find(ptr);
  if (found == blocks_.end()) {
    return false;
  }
  Block* block = found->second;
  if (C10_UNLIKELY(!block->allocated)) {
    fail_freed_twice(ptr, device_);
  }
  const size_t size = block->size;
  if (C10_UNLIKELY(trace_.on())) {
    trace_.record(
        TraceEntry::FREE_REQUESTED, ptr, block->requested, block->home->stream, block->home->pool.id);
  }
  block->allocated = false;
  stats_.on_free(block->home->pool.stat_type(), size);
  if (C10_UNLIKELY(block->oversize)) {
    block->oversize = false;
    stats_.on_oversize_allocation(-1);
  }
  size_t allocated = 0;
  size_t reserved = 0;
  if (C10_UNLIKELY(reporting)) {
    allocated = stats_.allocated_bytes();
    reserved = stats_.reserved_bytes();
  }
  if (C10_LIKELY(block->stream_uses.empty())) {
    return_to_pool(block);
  } else {
    free_after_events(block, lock);
  }
  if (C10_UNLIKELY(!isEnabled()) && !capture_in_progress()) {
    release(detach_segments([](const Block&) { return true; }), lock);
  }
  lock.unlock();
  if (C10_UNLIKELY(reporting)) {
    report(ptr, -static_cast<int64_t>(size), allocated, reserved);
  }
  return true;
}

void DeviceCachingAllocator::register_block(Block* block) {
  if (!block->registered) {
    blocks_[block->ptr] = block;
    block->registered = true;
  }
}

void DeviceCachingAllocator::unregister_block(Block* block) {
  if (block->registered) {
    blocks_.erase(block->ptr);
    block->registered = false;
  }
}

// The block keeps the first `size` bytes; returns one for the others.
Block* DeviceCachingAllocator::cut(Block* block, size_t size) {
  Block* rest = store_.take();
  rest->ptr = block->ptr + size;
  rest->size = block->size - size;
  rest->home = block->home;
  rest->expandable = block->expandable;
  rest->freed_at = block->freed_at;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) {
    rest->next->prev = rest;
  }
  block->next = rest;
  block->size = size;
  return rest;
}

// Joins the next block, which is in no bin.
void DeviceCachingAllocator::absorb_next(Block* block) {
  Block* next = block->next;
  block->size += next->size;
  block->oversize_segment |= next->oversize_segment;
  block->next = next->next;
  if (block->next != nullptr) {
    block->next->prev = block;
  }
  unregister_block(next);
  store_.give(next);
}

// Joins a free block, which is in no bin, with the neighbours that are free; returns the whole, which is in no bin.
Block* DeviceCachingAllocator::merge(Block* block) {
  if (Block* next = block->next; next != nullptr && next->available()) {
    block->home->free.remove(next);
    absorb_next(block);
  }
  if (Block* prev = block->prev; prev != nullptr && prev->available()) {
    block->home->free.remove(prev);
    absorb_next(prev);
    return prev;
  }
  return block;
}

void DeviceCachingAllocator::return_to_pool(Block* block) {
  StreamPool& home = *block->home;
  const StatType type = home.pool.stat_type();
  if (C10_UNLIKELY(trace_.on())) {
    trace_.free_completed(block->ptr, block->requested, home.stream, home.pool.id);
  }
  stats_.on_inactive(type, block->size, block->requested);
  block->requested = 0;

  const size_t size = block->size;
  const bool joins_next = block->next != nullptr && block->next->available();
  const bool joins_prev = block->prev != nullptr && block->prev->available();
  block = merge(block);
  const bool part = !block->whole_segment();
  stats_.on_split_change(
      type, int64_t{part} - joins_next - joins_prev,
      static_cast<int64_t>(part ? block->size : 0) - static_cast<int64_t>(block->size - size));
  block->freed_at = allocations_;
  home.free.insert(block);
}

void DeviceCachingAllocator::free_after_events(Block* block, Lock& lock) {
  if (capture_in_progress()) {
    block->pending_events = 1; // not available, see free_deferred
    deferred_.push_back(block);
    return;
  }
  const std::vector<MUSAStream> uses = std::move(block->stream_uses);
  block->stream_uses.clear();
  block->pending_events = uses.size();
  std::vector<musaEvent_t> events(uses.size(), nullptr);
  lock.unlock();
  for (size_t i = 0; i < uses.size(); ++i) {
    if (record_event(uses[i], &events[i]) != musaSuccess) {
      C10_MUSA_CLEAR_ERROR();
      // Without an event the stream itself tells. When not even that works the device is lost and nothing runs on it.
      C10_MUSA_IGNORE_ERROR(relaxed([&] { return musaStreamSynchronize(uses[i].stream()); }));
    }
  }
  lock.lock();
  for (size_t i = 0; i < uses.size(); ++i) {
    if (events[i] != nullptr) {
      events_[uses[i]].push_back({events[i], block});
    } else {
      --block->pending_events;
    }
  }
  if (block->pending_events == 0) {
    return_to_pool(block);
  }
}

bool DeviceCachingAllocator::record_stream(void* ptr, MUSAStream stream) {
  const musaStream_t handle = stream.stream();
  Lock lock(mutex_);
  const auto found = blocks_.find(ptr);
  if (found == blocks_.end() || !found->second->allocated) {
    return false;
  }
  Block* block = found->second;
  if (stream.device_index() == device_ && handle == block->home->stream) {
    return true; // stream order protects it already
  }
  if (std::find(block->stream_uses.begin(), block->stream_uses.end(), stream) == block->stream_uses.end()) {
    block->stream_uses.push_back(stream);
  }
  return true;
}

// Returns blocks whose events have finished. Events of one stream finish in order, so the first that has not ends the
// look at that stream.
void DeviceCachingAllocator::process_events(Wait wait, Lock& lock) {
  const BetweenCaptures between;
  if (!between) {
    return;
  }
  std::vector<MUSAStream> streams;
  streams.reserve(events_.size());
  for (const auto& entry : events_) {
    streams.push_back(entry.first);
  }
  for (const MUSAStream& stream : streams) {
    while (true) {
      const auto queue = events_.find(stream);
      if (queue == events_.end()) {
        break; // emptied, perhaps by another thread while the lock was open
      }
      const PendingEvent pending = queue->second.front();
      queue->second.pop_front();
      if (queue->second.empty()) {
        events_.erase(queue);
      }
      lock.unlock();
      const musaError_t error = relaxed(
          [&] { return wait == Wait::Yes ? musaEventSynchronize(pending.event) : musaEventQuery(pending.event); });
      lock.lock();
      if (error != musaSuccess && !is_unloading(error)) {
        events_[stream].push_front(pending);
        if (error == musaErrorNotReady) {
          C10_MUSA_CLEAR_ERROR();
          break;
        }
        throw_musa_error(
            error, wait == Wait::Yes ? "musaEventSynchronize(event)" : "musaEventQuery(event)", __func__, __FILE__,
            __LINE__);
      }
      recycle_event(stream.device_index(), pending.event);
      if (--pending.block->pending_events == 0) {
        return_to_pool(pending.block);
      }
    }
  }
}

// ---- giving segments back

// A detached segment is in no bin and no map: while the lock is open nobody can reach it, and the address may be handed
// out again by the SDK.
void DeviceCachingAllocator::detach(Block* block) {
  block->home->free.remove(block);
  unregister_block(block);
}

template <typename Select>
std::vector<Block*> DeviceCachingAllocator::detach_segments(Select select) {
  std::vector<Block*> segments;
  for (const auto& pool : pools_) {
    if (!pool.second->may_release()) {
      continue;
    }
    for (BlockPool* part : {&pool.second->small, &pool.second->large}) {
      for (const auto& home : part->streams) {
        home->free.for_each([&](Block* block) {
          if (is_releasable(*block) && select(*block)) {
            segments.push_back(block);
          }
        });
      }
    }
  }
  for (Block*& block : segments) {
    if (block->expandable != nullptr) {
      block = detach_pages(block);
    } else {
      detach(block);
    }
  }
  return segments;
}

// Frees detached segments. What cannot be freed returns to the cache, then the failure is raised.
void DeviceCachingAllocator::release(std::vector<Block*> segments, Lock& lock) {
  if (segments.empty()) {
    return;
  }
  // Before the lock opens: another thread may get the same address from the SDK and record that first.
  for (const Block* block : segments) {
    const auto action = block->expandable != nullptr ? TraceEntry::SEGMENT_UNMAP : TraceEntry::SEGMENT_FREE;
    trace_.segment_went(action, block->ptr, block->size, block->home->stream, block->home->pool.id);
  }
  size_t freed = 0;
  lock.unlock();
  musaError_t error = musaSuccess;
  const char* call = "musaSetDevice(device)";
  // No interaction mode permits musaDeviceSynchronize during a capture: the segments stay until a later call.
  if (const BetweenCaptures between; between) {
    const CurrentDevice current(device_);
    error = current.error();
    if (error == musaSuccess) {
      // Work queued before the free may still use the memory; the cache relied on stream order, the SDK does not.
      call = "musaDeviceSynchronize()";
      error = musaDeviceSynchronize();
    }
    while (error == musaSuccess && freed < segments.size()) {
      error = free_segment(*segments[freed], &call);
      // Also when it failed: whether the SDK still holds that memory is unknown, so it is never handed out again.
      ++freed;
    }
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
      trace_.segment_came(action, block->ptr, block->size, block->home->stream, block->home->pool.id);
      reattach(block);
      continue;
    }
    if (block->expandable != nullptr) {
      const musaError_t left = finish_pages(block);
      if (error == musaSuccess && !is_unloading(left)) {
        call = "muMemAddressFree(base, size)";
        error = left;
      }
      continue;
    }
    count_released(*block, -1);
    if (block->oversize_segment) {
      stats_.on_oversize_segment(-1);
    }
    store_.give(block);
  }
  drop_unused_pools(lock);
  if (error != musaSuccess) {
    throw_musa_error(error, call, __func__, __FILE__, __LINE__);
  }
}

// Frees as little as makes room: the smallest cached segment that is large enough, else the largest ones until their sum
// is. Their memory is of other streams or too small a piece, so the cache itself could not serve the request.
void DeviceCachingAllocator::release_to_fit(size_t size, Lock& lock) {
  std::vector<Block*> candidates = detach_segments([](const Block&) { return true; });
  std::sort(candidates.begin(), candidates.end(), [](const Block* a, const Block* b) { return a->size < b->size; });
  const auto fitting = std::find_if(
      candidates.begin(), candidates.end(), [size](const Block* block) { return block->size >= size; });
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

// Above the configured share of the limit, frees large segments until below it, those idle longest first. Those idle for
// less than the average stay: they are in use again soon.
void DeviceCachingAllocator::collect_garbage(size_t size, Lock& lock) {
  const double threshold = Config::garbage_collection_threshold();
  if (C10_LIKELY(threshold <= 0.0) || capture_in_progress()) {
    return;
  }
  const auto target = static_cast<size_t>(threshold * static_cast<double>(limit()));
  const size_t reserved = stats_.reserved_bytes() + size;
  if (reserved <= target) {
    return;
  }
  std::vector<std::pair<uint64_t, size_t>> idle; // (freed at, bytes), the oldest first
  uint64_t age_sum = 0;
  const uint64_t now = allocations_;
  for (const auto& home : default_pool_->large.streams) {
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
  release(
      detach_segments([last](const Block& block) { return !block.home->pool.is_small && block.freed_at <= last; }), lock);
}

void DeviceCachingAllocator::empty_cache(MempoolId_t id) {
  const TraceScope scope(trace_, RecordContext::ALL);
  Lock lock(mutex_);
  if (capture_in_progress()) {
    return;
  }
  process_events(Wait::Yes, lock);
  const bool every = id == MempoolId_t{0, 0};
  release(detach_segments([&](const Block& block) { return every || block.home->pool.id == id; }), lock);
}

// Bytes that this process may reserve. The device is the current one.
size_t DeviceCachingAllocator::limit() {
  if (total_memory_ == 0) {
    size_t free_bytes = 0;
    C10_MUSA_CHECK(musaMemGetInfo(&free_bytes, &total_memory_));
  }
  return static_cast<size_t>(fraction_ * static_cast<double>(total_memory_));
}

void DeviceCachingAllocator::out_of_memory(
    const StreamPool& home, size_t nbytes, size_t segment, Lock& lock) {
  stats_.on_out_of_memory();
  const size_t allocated = stats_.allocated_bytes();
  const size_t reserved = stats_.reserved_bytes();
  const size_t largest = largest_cached();
  const double fraction = fraction_;
  const size_t in_private_pools = stats_.reserved_by_private_pools();
  lock.unlock();

  size_t free_bytes = 0;
  size_t total_bytes = 0;
  C10_MUSA_IGNORE_ERROR(musaMemGetInfo(&free_bytes, &total_bytes));
  lock.lock();
  trace_.record(TraceEntry::OOM, reinterpret_cast<const void*>(free_bytes), nbytes, home.stream, home.pool.id);
  lock.unlock();
  trace::notify_out_of_memory(device_, nbytes, total_bytes, free_bytes);
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
        static_cast<int64_t>(nbytes), allocated, reserved, Device(DeviceType::PrivateUse1, device_));
  }
  TORCH_CHECK_WITH(
      OutOfMemoryError, false,
      "MUSA out of memory. Tried to allocate ", format_size(nbytes), " (a segment of ", format_size(segment),
      ") on musa:", static_cast<int>(device_), ".\n",
      "Device: ", format_size(total_bytes), " total, ", format_size(free_bytes), " free. ",
      "This process: ", format_size(allocated), " allocated by tensors, ", format_size(reserved),
      " reserved by the caching allocator", pools_text, ", largest free block in the cache ", format_size(largest), ".",
      limit_text, capture_text,
      "\nLikely causes, in order: the tensors alive need this much; the cache is fragmented (reserved is far above "
      "allocated); another process holds the memory (reserved is far below total - free).\n",
      "Cure: use a smaller batch; drop references to tensors and call torch.musa.empty_cache(); against fragmentation "
      "set PYTORCH_ALLOC_CONF=expandable_segments:True.");
}

void DeviceCachingAllocator::report(void* ptr, int64_t size, size_t allocated, size_t reserved) const {
  reportMemoryUsageToProfiler(
      ptr, size, allocated, reserved, Device(DeviceType::PrivateUse1, device_));
}

} // namespace c10::musa::MUSACachingAllocator
