// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/allocator/MUSABlockPool.h>
#include <c10/util/flat_hash_map.h>

#include <functional>
#include <memory>
#include <vector>

namespace c10::musa::MUSACachingAllocator {

// The memory pools of one device: the default one, and private ones with their holders and the streams that fill them.
// Guarded by the mutex of the DeviceCachingAllocator that owns it. Functions that take the id of a private pool raise for
// the default pool and for a pool that does not exist.
class MemoryPools {
 public:
  using Filter = std::function<bool(musaStream_t)>;

  explicit MemoryPools(DeviceIndex device);

  MemoryPool& default_pool() { return *default_pool_; }
  // The pool that allocations for the stream currently come from.
  MemoryPool& filled_by(musaStream_t stream) {
    return C10_LIKELY(fillings_.empty()) ? *default_pool_ : find_filled_by(stream);
  }
  bool contains(MempoolId_t id) const { return pools_.count(id) != 0; }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& entry : pools_) {
      visit(*entry.second);
    }
  }
  size_t largest_free_block() const;

  // Allocations for the streams that the filter accepts come from the pool, which is held until the caller releases it.
  // Among several such pools, the last one begun has precedence. If this raises, the caller keeps the filter.
  void begin_filling(MempoolId_t id, Filter&& filter);
  // Returns the filter, whose captured objects must be destroyed without the mutex.
  [[nodiscard]] Filter end_filling(MempoolId_t id);

  // Creates the pool if it does not exist. source: the allocator of its segments; nullptr for musaMalloc, or for the source
  // of an existing pool.
  MemoryPool& hold(MempoolId_t id, const std::shared_ptr<MUSAAllocator>& source);
  void release(MempoolId_t id);
  int use_count(MempoolId_t id) const;
  void set_use_on_oom(MempoolId_t id, bool value);
  void set_no_split(MempoolId_t id);

  // Removes the private pools that have neither a holder nor a segment, unless is_used(pool). Destroying one may run the
  // user's code, so the caller does that without the mutex.
  template <typename IsUsed>
  [[nodiscard]] std::vector<std::unique_ptr<MemoryPool>> take_unused(IsUsed is_used) {
    std::vector<std::unique_ptr<MemoryPool>> unused;
    for (auto pool = pools_.begin(); pool != pools_.end();) {
      const MemoryPool& candidate = *pool->second;
      if (candidate.is_private() && candidate.use_count == 0 && candidate.reserved == 0 && candidate.growing == 0 &&
          !is_used(candidate)) {
        unused.push_back(std::move(pool->second));
        pool = pools_.erase(pool);
      } else {
        ++pool;
      }
    }
    return unused;
  }

 private:
  // A pool that the allocations of some streams currently come from.
  struct Filling {
    MemoryPool* pool;
    Filter filter;
  };

  MemoryPool& find_filled_by(musaStream_t stream);
  MemoryPool& private_pool(MempoolId_t id);

  const DeviceIndex device_;
  ska::flat_hash_map<MempoolId_t, std::unique_ptr<MemoryPool>, MempoolIdHash> pools_;
  MemoryPool* const default_pool_;
  std::vector<Filling> fillings_;
};

} // namespace c10::musa::MUSACachingAllocator
