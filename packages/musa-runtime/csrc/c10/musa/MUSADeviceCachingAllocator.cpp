// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSADeviceCachingAllocator.h>

#include <c10/musa/MUSAAllocatorEvents.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>

#include <algorithm>
#include <array>

namespace c10::musa::MUSACachingAllocator {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
using c10::CachingAllocator::kMinLargeAlloc;
using c10::CachingAllocator::kRoundLarge;
using c10::CachingAllocator::kSmallBuffer;
using c10::CachingAllocator::kSmallSize;

void increase(StatArray& stat, StatType type, size_t amount) {
  stat[static_cast<size_t>(StatType::AGGREGATE)].increase(amount);
  stat[static_cast<size_t>(type)].increase(amount);
}

void decrease(StatArray& stat, StatType type, size_t amount) {
  stat[static_cast<size_t>(StatType::AGGREGATE)].decrease(amount);
  stat[static_cast<size_t>(type)].decrease(amount);
}

void change(StatArray& stat, StatType type, int64_t amount) {
  if (amount > 0) {
    increase(stat, type, static_cast<size_t>(amount));
  } else if (amount < 0) {
    decrease(stat, type, static_cast<size_t>(-amount));
  }
}

int64_t total(const StatArray& stat) {
  return stat[static_cast<size_t>(StatType::AGGREGATE)].current;
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
          pools_.emplace(MempoolId_t{0, 0}, std::make_unique<MemoryPool>(MempoolId_t{0, 0})).first->second.get()) {}

// ---- allocation

BlockPool& DeviceCachingAllocator::pool_for(size_t size) {
  return size <= kSmallSize ? default_pool_->small : default_pool_->large;
}

void* DeviceCachingAllocator::malloc(size_t nbytes, musaStream_t stream) {
  const bool reporting = memoryProfilingEnabled();
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      nbytes < (size_t{1} << 48),
      "MUSA out of memory: ", nbytes, " bytes were asked for, more than a device can address.\n",
      "Likely cause: a size that was computed from a negative or overflowing number.");
  const size_t size = isEnabled() ? round_size(nbytes) : nbytes;

  Lock lock(mutex_);
  if (C10_UNLIKELY(!events_.empty())) {
    process_events(Wait::No, lock);
  }
  StreamPool& home = pool_for(size).on(stream);
  Block* block = find_cached(home, size);
  if (C10_UNLIKELY(block == nullptr)) {
    block = grow(home, size, nbytes, lock);
  }
  hand_out(block, size, nbytes);
  void* ptr = block->ptr;
  if (C10_UNLIKELY(reporting)) {
    const auto allocated = total(stats_.allocated_bytes);
    const auto reserved = total(stats_.reserved_bytes);
    const auto block_size = static_cast<int64_t>(block->size);
    lock.unlock();
    report(ptr, block_size, allocated, reserved);
  }
  return ptr;
}

// Takes the best fit out of its bin.
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
    const size_t max_split = Config::max_split_size();
    if (block->size >= max_split &&
        (size < max_split || block->size - size >= Config::max_non_split_rounding_size())) {
      return nullptr;
    }
  }
  home.free.remove(block);
  if (!block->whole_segment()) {
    const StatType type = home.pool.stat_type();
    decrease(stats_.inactive_split, type, 1);
    decrease(stats_.inactive_split_bytes, type, block->size);
  }
  return block;
}

Block* DeviceCachingAllocator::grow(StreamPool& home, size_t size, size_t nbytes, Lock& lock) {
  const size_t segment = segment_size(size);
  collect_garbage(segment, lock);
  if (Block* block = new_segment(home, segment)) {
    return block;
  }
  ++stats_.num_alloc_retries;
  release_to_fit(segment, lock);
  if (Block* block = new_segment(home, segment)) {
    return block;
  }
  ++stats_.num_sync_all_streams;
  process_events(Wait::Yes, lock);
  // The lock was open: memory that other threads freed, or that the events gave back, may serve now.
  if (Block* block = find_cached(home, size)) {
    return block;
  }
  release(detach_segments([](const Block&) { return true; }), lock);
  if (Block* block = new_segment(home, segment)) {
    return block;
  }
  out_of_memory(nbytes, segment, lock);
}

// Null when the device, or the limit, has no room.
Block* DeviceCachingAllocator::new_segment(StreamPool& home, size_t size) {
  if (fraction_ < 1.0 && static_cast<size_t>(total(stats_.reserved_bytes)) + size > limit()) {
    return nullptr;
  }
  Block* block = store_.take();
  void* ptr = nullptr;
  const musaError_t error = musaMalloc(&ptr, size);
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
  blocks_[ptr] = block;
  const StatType type = home.pool.stat_type();
  increase(stats_.segment, type, 1);
  increase(stats_.reserved_bytes, type, size);
  ++stats_.num_device_alloc;
  if (size >= Config::max_split_size()) {
    stats_.oversize_segments.increase(1);
  }
  return block;
}

// Cuts a block that is in no bin to size and marks it allocated.
void DeviceCachingAllocator::hand_out(Block* block, size_t size, size_t nbytes) {
  StreamPool& home = *block->home;
  const StatType type = home.pool.stat_type();
  const size_t remaining = block->size - size;
  // A remainder of a large block that only small requests could use is not worth splitting off: those have their pool.
  const bool split = home.pool.is_small ? remaining >= kMinBlockSize
                                        : remaining > kSmallSize && size < Config::max_split_size();
  if (split && isEnabled()) {
    Block* rest = store_.take();
    rest->ptr = block->ptr + size;
    rest->size = remaining;
    rest->home = &home;
    rest->prev = block;
    rest->next = block->next;
    rest->freed_at = allocations_;
    if (rest->next != nullptr) {
      rest->next->prev = rest;
    }
    block->next = rest;
    block->size = size;
    blocks_[rest->ptr] = rest;
    home.free.insert(rest);
    increase(stats_.inactive_split, type, 1);
    increase(stats_.inactive_split_bytes, type, remaining);
  }
  block->allocated = true;
  block->requested = nbytes;
  ++allocations_;
  increase(stats_.allocation, type, 1);
  increase(stats_.allocated_bytes, type, block->size);
  increase(stats_.active, type, 1);
  increase(stats_.active_bytes, type, block->size);
  increase(stats_.requested_bytes, type, nbytes);
  if (!home.pool.is_small && block->size >= Config::max_split_size()) {
    block->oversize = true;
    stats_.oversize_allocations.increase(1);
  }
}

// ---- free

bool DeviceCachingAllocator::free(void* ptr) {
  const bool reporting = memoryProfilingEnabled();
  Lock lock(mutex_);
  const auto found = blocks_.find(ptr);
  if (found == blocks_.end()) {
    return false;
  }
  Block* block = found->second;
  TORCH_CHECK(
      block->allocated, "Device memory at ", ptr, " on musa:", static_cast<int>(device_), " was freed twice.\n",
      "Likely cause: two owners call the deleter for one pointer.");
  const StatType type = block->home->pool.stat_type();
  const auto size = static_cast<int64_t>(block->size);
  block->allocated = false;
  decrease(stats_.allocation, type, 1);
  decrease(stats_.allocated_bytes, type, block->size);
  if (block->oversize) {
    block->oversize = false;
    stats_.oversize_allocations.decrease(1);
  }
  const auto allocated = total(stats_.allocated_bytes);
  const auto reserved = total(stats_.reserved_bytes);
  if (C10_LIKELY(block->stream_uses.empty())) {
    return_to_pool(block);
  } else {
    free_after_events(block, lock);
  }
  if (C10_UNLIKELY(!isEnabled())) {
    release(detach_segments([](const Block&) { return true; }), lock);
  }
  lock.unlock();
  if (C10_UNLIKELY(reporting)) {
    report(ptr, -size, allocated, reserved);
  }
  return true;
}

// Joins a free neighbour to the block, returns its size; 0 when it is in use.
size_t DeviceCachingAllocator::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->available()) {
    return 0;
  }
  block->home->free.remove(neighbour);
  const size_t size = neighbour->size;
  if (block->prev == neighbour) {
    // The entry of the merged block is that of the lower address.
    blocks_.erase(block->ptr);
    block->ptr = neighbour->ptr;
    block->prev = neighbour->prev;
    if (block->prev != nullptr) {
      block->prev->next = block;
    }
    blocks_[block->ptr] = block;
  } else {
    blocks_.erase(neighbour->ptr);
    block->next = neighbour->next;
    if (block->next != nullptr) {
      block->next->prev = block;
    }
  }
  block->size += size;
  store_.give(neighbour);
  return size;
}

void DeviceCachingAllocator::return_to_pool(Block* block) {
  StreamPool& home = *block->home;
  const StatType type = home.pool.stat_type();
  decrease(stats_.active, type, 1);
  decrease(stats_.active_bytes, type, block->size);
  decrease(stats_.requested_bytes, type, block->requested);
  block->requested = 0;

  int64_t splits = 0;
  int64_t split_bytes = 0;
  for (Block* neighbour : {block->prev, block->next}) {
    if (const size_t merged = merge(block, neighbour)) {
      --splits;
      split_bytes -= static_cast<int64_t>(merged);
    }
  }
  if (!block->whole_segment()) {
    ++splits;
    split_bytes += static_cast<int64_t>(block->size);
  }
  change(stats_.inactive_split, type, splits);
  change(stats_.inactive_split_bytes, type, split_bytes);
  block->freed_at = allocations_;
  home.free.insert(block);
}

void DeviceCachingAllocator::free_after_events(Block* block, Lock& lock) {
  const std::vector<MUSAStream> uses = std::move(block->stream_uses);
  block->stream_uses.clear();
  block->pending_events = uses.size();
  std::vector<musaEvent_t> events(uses.size(), nullptr);
  lock.unlock();
  for (size_t i = 0; i < uses.size(); ++i) {
    if (record_event(uses[i], &events[i]) != musaSuccess) {
      C10_MUSA_CLEAR_ERROR();
      // Without an event the stream itself tells. When not even that works the device is lost and nothing runs on it.
      C10_MUSA_IGNORE_ERROR(musaStreamSynchronize(uses[i].stream()));
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
      const musaError_t error =
          wait == Wait::Yes ? musaEventSynchronize(pending.event) : musaEventQuery(pending.event);
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
  blocks_.erase(block->ptr);
}

template <typename Select>
std::vector<Block*> DeviceCachingAllocator::detach_segments(Select select) {
  std::vector<Block*> segments;
  for (const auto& pool : pools_) {
    for (BlockPool* part : {&pool.second->small, &pool.second->large}) {
      for (const auto& home : part->streams) {
        home->free.for_each([&](Block* block) {
          if (block->whole_segment() && select(*block)) {
            segments.push_back(block);
          }
        });
      }
    }
  }
  for (Block* block : segments) {
    detach(block);
  }
  return segments;
}

// Frees detached segments. What cannot be freed returns to the cache, then the failure is raised.
void DeviceCachingAllocator::release(std::vector<Block*> segments, Lock& lock) {
  if (segments.empty()) {
    return;
  }
  size_t freed = 0;
  lock.unlock();
  musaError_t error = musaSuccess;
  const char* call = "musaSetDevice(device)";
  {
    const CurrentDevice current(device_);
    error = current.error();
    if (error == musaSuccess) {
      // Work queued before the free may still use the memory; the cache relied on stream order, the SDK does not.
      call = "musaDeviceSynchronize()";
      error = musaDeviceSynchronize();
    }
    while (error == musaSuccess && freed < segments.size()) {
      call = "musaFree(segment)";
      error = musaFree(segments[freed]->ptr);
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
      blocks_[block->ptr] = block;
      block->home->free.insert(block);
      continue;
    }
    const StatType type = block->home->pool.stat_type();
    decrease(stats_.segment, type, 1);
    decrease(stats_.reserved_bytes, type, block->size);
    ++stats_.num_device_free;
    if (block->size >= Config::max_split_size()) {
      stats_.oversize_segments.decrease(1);
    }
    store_.give(block);
  }
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
    blocks_[block->ptr] = block;
    block->home->free.insert(block);
  }
  release(std::move(chosen), lock);
}

// Above the configured share of the limit, frees large segments that have been idle for longer than the average.
void DeviceCachingAllocator::collect_garbage(size_t size, Lock& lock) {
  const double threshold = Config::garbage_collection_threshold();
  if (C10_LIKELY(threshold <= 0.0)) {
    return;
  }
  const auto target = static_cast<size_t>(threshold * static_cast<double>(limit()));
  const size_t reserved = static_cast<size_t>(total(stats_.reserved_bytes)) + size;
  if (reserved <= target) {
    return;
  }
  uint64_t age_sum = 0;
  uint64_t count = 0;
  for (const auto& home : default_pool_->large.streams) {
    home->free.for_each([&](const Block* block) {
      if (block->whole_segment()) {
        age_sum += allocations_ - block->freed_at;
        ++count;
      }
    });
  }
  if (count == 0) {
    return;
  }
  const uint64_t average = age_sum / count;
  size_t excess = reserved - target;
  release(
      detach_segments([&](const Block& block) {
        if (block.home->pool.is_small || excess == 0 || allocations_ - block.freed_at < average) {
          return false;
        }
        excess -= std::min(excess, block.size);
        return true;
      }),
      lock);
}

void DeviceCachingAllocator::empty_cache(MempoolId_t id) {
  Lock lock(mutex_);
  process_events(Wait::Yes, lock);
  const bool every = id == MempoolId_t{0, 0};
  release(detach_segments([&](const Block& block) { return every || block.home->pool.id == id; }), lock);
}

// Bytes that this process may reserve.
size_t DeviceCachingAllocator::limit() {
  if (total_memory_ == 0) {
    const CurrentDevice current(device_);
    C10_MUSA_CHECK(current.error());
    size_t free_bytes = 0;
    C10_MUSA_CHECK(musaMemGetInfo(&free_bytes, &total_memory_));
  }
  return static_cast<size_t>(fraction_ * static_cast<double>(total_memory_));
}

void DeviceCachingAllocator::out_of_memory(size_t nbytes, size_t segment, Lock& lock) {
  ++stats_.num_ooms;
  const auto allocated = static_cast<size_t>(total(stats_.allocated_bytes));
  const auto reserved = static_cast<size_t>(total(stats_.reserved_bytes));
  const size_t largest = largest_cached();
  const double fraction = fraction_;
  lock.unlock();

  size_t free_bytes = 0;
  size_t total_bytes = 0;
  C10_MUSA_IGNORE_ERROR(musaMemGetInfo(&free_bytes, &total_bytes));
  const std::string limit_text = fraction < 1.0
      ? c10::str(
            "\nThis process is limited to ", fraction, " of the device, ",
            format_size(static_cast<size_t>(fraction * static_cast<double>(total_bytes))), ".")
      : std::string();
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
      " reserved by the caching allocator, largest free block in the cache ", format_size(largest), ".", limit_text,
      "\nLikely causes, in order: the tensors alive need this much; the cache is fragmented (reserved is far above "
      "allocated); another process holds the memory (reserved is far below total - free).\n",
      "Cure: use a smaller batch; drop references to tensors and call torch.musa.empty_cache(); against fragmentation "
      "set PYTORCH_ALLOC_CONF=max_split_size_mb:512.");
}

// ---- questions

bool DeviceCachingAllocator::owns(const void* ptr) {
  const Lock lock(mutex_);
  const auto found = blocks_.find(ptr);
  return found != blocks_.end() && found->second->allocated;
}

void* DeviceCachingAllocator::base_allocation(void* ptr, size_t* size) {
  const Lock lock(mutex_);
  const auto found = blocks_.find(ptr);
  if (found == blocks_.end() || !found->second->allocated) {
    return nullptr;
  }
  const Block* first = found->second;
  while (first->prev != nullptr) {
    first = first->prev;
  }
  if (size != nullptr) {
    *size = 0;
    for (const Block* block = first; block != nullptr; block = block->next) {
      *size += block->size;
    }
  }
  return first->ptr;
}

DeviceStats DeviceCachingAllocator::stats() {
  const Lock lock(mutex_);
  DeviceStats result = stats_;
  result.max_split_size = static_cast<int64_t>(std::min<size_t>(Config::max_split_size(), INT64_MAX));
  return result;
}

void DeviceCachingAllocator::reset_peak_stats() {
  const Lock lock(mutex_);
  for (StatArray* stat :
       {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split, &stats_.allocated_bytes,
        &stats_.reserved_bytes, &stats_.active_bytes, &stats_.inactive_split_bytes, &stats_.requested_bytes}) {
    for (auto& part : *stat) {
      part.reset_peak();
    }
  }
  stats_.oversize_allocations.reset_peak();
  stats_.oversize_segments.reset_peak();
}

void DeviceCachingAllocator::reset_accumulated_stats() {
  const Lock lock(mutex_);
  for (StatArray* stat :
       {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split, &stats_.allocated_bytes,
        &stats_.reserved_bytes, &stats_.active_bytes, &stats_.inactive_split_bytes, &stats_.requested_bytes}) {
    for (auto& part : *stat) {
      part.reset_accumulated();
    }
  }
  stats_.oversize_allocations.reset_accumulated();
  stats_.oversize_segments.reset_accumulated();
  stats_.num_alloc_retries = 0;
  stats_.num_ooms = 0;
  stats_.num_sync_all_streams = 0;
  stats_.num_device_alloc = 0;
  stats_.num_device_free = 0;
}

void DeviceCachingAllocator::set_memory_fraction(double fraction) {
  const Lock lock(mutex_);
  fraction_ = fraction;
}

double DeviceCachingAllocator::memory_fraction() {
  const Lock lock(mutex_);
  return fraction_;
}

size_t DeviceCachingAllocator::largest_cached() const {
  size_t largest = 0;
  for (const auto& pool : pools_) {
    for (const BlockPool* part : {&pool.second->small, &pool.second->large}) {
      for (const auto& home : part->streams) {
        largest = std::max(largest, home->free.largest());
      }
    }
  }
  return largest;
}

std::pair<size_t, size_t> DeviceCachingAllocator::cache_info() {
  const Lock lock(mutex_);
  return {
      static_cast<size_t>(total(stats_.reserved_bytes) - total(stats_.active_bytes)), largest_cached()};
}

std::vector<SegmentInfo> DeviceCachingAllocator::snapshot() {
  const Lock lock(mutex_);
  std::vector<SegmentInfo> segments;
  for (const auto& entry : blocks_) {
    const Block* first = entry.second;
    if (first->prev != nullptr) {
      continue;
    }
    SegmentInfo& segment = segments.emplace_back();
    segment.device = device_;
    segment.address = reinterpret_cast<size_t>(first->ptr);
    segment.stream = first->home->stream;
    segment.is_large = !first->home->pool.is_small;
    segment.owner_private_pool_id = first->home->pool.id;
    for (const Block* block = first; block != nullptr; block = block->next) {
      auto& info = segment.blocks.emplace_back();
      info.size = block->size;
      info.requested_size = block->requested;
      info.allocated = block->allocated;
      info.active = !block->available();
      segment.total_size += block->size;
      segment.allocated_size += info.allocated ? block->size : 0;
      segment.active_size += info.active ? block->size : 0;
      segment.requested_size += info.active ? block->requested : 0;
    }
  }
  std::sort(segments.begin(), segments.end(), [](const SegmentInfo& a, const SegmentInfo& b) {
    return a.address < b.address;
  });
  return segments;
}

void DeviceCachingAllocator::report(void* ptr, int64_t size, int64_t allocated, int64_t reserved) const {
  reportMemoryUsageToProfiler(
      ptr, size, static_cast<size_t>(allocated), static_cast<size_t>(reserved),
      Device(DeviceType::PrivateUse1, device_));
}

} // namespace c10::musa::MUSACachingAllocator
