// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Stream-ordered allocation. Memory is allocated immediately and freed when the stream reaches musaFreeAsync. Pools
// only count allocations; they cache no memory.
#include "pool.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "api_support.h"
#include "engine/capture.h"
#include "engine/checked_size.h"
#include "engine/kernel.h"
#include "engine/memory.h"

struct MUmemPoolHandle_st {
  int device = 0;
  bool built_in = false; // the device's default pool
  size_t limit = 0;      // 0: no limit
  uint64_t used = 0, most_used = 0;
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};
  std::map<int, musaMemAccessFlags> access; // by other devices
};

// The C declarations; for C++ the header has templates with these names.
MUSA_EXTERN_C_BEGIN
MUSA_PUBLIC musaError_t musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream);
MUSA_PUBLIC musaError_t musaFreeAsync(void* pointer, musaStream_t stream);
MUSA_PUBLIC musaError_t musaMallocFromPoolAsync(void** pointer, size_t bytes, musaMemPool_t pool, musaStream_t stream);
MUSA_PUBLIC musaError_t musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device);
MUSA_PUBLIC musaError_t musaDeviceGetMemPool(musaMemPool_t* pool, int device);
MUSA_PUBLIC musaError_t musaDeviceSetMemPool(int device, musaMemPool_t pool);
MUSA_PUBLIC musaError_t musaMemPoolCreate(musaMemPool_t* pool, const musaMemPoolProps* properties);
MUSA_PUBLIC musaError_t musaMemPoolDestroy(musaMemPool_t pool);
MUSA_PUBLIC musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value);
MUSA_PUBLIC musaError_t musaMemPoolGetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value);
MUSA_PUBLIC musaError_t musaMemPoolSetAccess(musaMemPool_t pool, const musaMemAccessDesc* access, size_t count);
MUSA_PUBLIC musaError_t musaMemPoolGetAccess(musaMemAccessFlags* flags, musaMemPool_t pool, musaMemLocation* location);
MUSA_PUBLIC musaError_t musaMemPoolTrimTo(musaMemPool_t pool, size_t bytes);
MUSA_EXTERN_C_END

namespace musa_emulator {
namespace {

struct Allocation {
  std::shared_ptr<MUmemPoolHandle_st> pool;
  size_t bytes;
  bool freed = false; // musaFreeAsync is pending on a stream
};

// Guarded by its mutex. No other lock is acquired while it is held.
struct Pools {
  std::mutex mutex;
  std::map<musaMemPool_t, std::shared_ptr<MUmemPoolHandle_st>> pools;
  std::map<int, musaMemPool_t> defaults, current; // by device
  std::map<void*, Allocation> allocations;
};

Pools& pools() {
  static auto* instance = new Pools;
  return *instance;
}

using PoolLock = std::lock_guard<std::mutex>;

// The lock must be held.
musaMemPool_t default_pool(Pools& all, int device) {
  musaMemPool_t& pool = all.defaults[device];
  if (pool == nullptr) {
    auto made = std::make_shared<MUmemPoolHandle_st>();
    made->device = device;
    made->built_in = true;
    pool = made.get();
    all.pools[pool] = std::move(made);
  }
  return pool;
}

musaMemPool_t current_pool(Pools& all, int device) {
  const auto found = all.current.find(device);
  return found != all.current.end() ? found->second : default_pool(all, device);
}

musaError_t allocate(void** pointer, size_t bytes, musaMemPool_t pool, Stream& stream) {
  if (pointer == nullptr) {
    return musaErrorInvalidValue;
  }
  // Allocations in graphs are not emulated.
  if (const musaError_t status = forbid_on_capturing(stream); status != musaSuccess) {
    return status;
  }
  Pools& all = pools();
  std::shared_ptr<MUmemPoolHandle_st> from;
  {
    const PoolLock lock(all.mutex);
    const auto found = all.pools.find(pool != nullptr ? pool : current_pool(all, stream.device->ordinal));
    if (found == all.pools.end()) {
      return musaErrorInvalidValue;
    }
    from = found->second;
    if (from->limit != 0 && checked_sum(from->used, bytes) > from->limit) {
      return musaErrorMemoryAllocation;
    }
  }
  if (bytes == 0) {
    *pointer = nullptr;
    return musaSuccess;
  }
  const musaError_t status = allocate_device(from->device, bytes, pointer);
  if (status == musaSuccess) {
    const PoolLock lock(all.mutex);
    from->used += bytes;
    from->most_used = std::max(from->most_used, from->used);
    all.allocations.insert_or_assign(*pointer, Allocation{from, bytes});
  }
  return status;
}

musaError_t release(void* pointer) {
  forget_pool_allocation(pointer);
  return free_device(pointer);
}

template <class Body>
musaError_t with_pool(musaMemPool_t handle, Body&& body) {
  Pools& all = pools();
  const PoolLock lock(all.mutex);
  const auto found = all.pools.find(handle);
  return found != all.pools.end() ? body(all, *found->second) : musaErrorInvalidValue;
}

} // namespace

void forget_pool_allocation(void* pointer) {
  Pools& all = pools();
  const PoolLock lock(all.mutex);
  if (const auto found = all.allocations.find(pointer); found != all.allocations.end()) {
    found->second.pool->used -= found->second.bytes;
    all.allocations.erase(found);
  }
}

} // namespace musa_emulator

using namespace musa_emulator;

musaError_t musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream) {
  return api<"musaMallocAsync">(
      [&] { return with_stream(stream, [&](Stream& found) { return allocate(pointer, bytes, nullptr, found); }); });
}

musaError_t musaMallocFromPoolAsync(void** pointer, size_t bytes, musaMemPool_t pool, musaStream_t stream) {
  return api<"musaMallocFromPoolAsync">([&] {
    return with_stream(stream, [&](Stream& found) {
      return pool != nullptr ? allocate(pointer, bytes, pool, found) : musaErrorInvalidValue;
    });
  });
}

musaError_t musaFreeAsync(void* pointer, musaStream_t stream) {
  return api<"musaFreeAsync", kReleases>([&] {
    return with_stream(stream, [&](Stream& found) {
      if (const musaError_t status = forbid_on_capturing(found); status != musaSuccess) {
        return status;
      }
      if (pointer == nullptr) {
        return musaSuccess;
      }
      const PointerInfo info = classify(pointer);
      if (info.type != musaMemoryTypeDevice || info.base != reinterpret_cast<uintptr_t>(pointer)) {
        return musaErrorInvalidValue;
      }
      {
        Pools& all = pools();
        const PoolLock lock(all.mutex);
        if (const auto known = all.allocations.find(pointer); known != all.allocations.end()) {
          if (known->second.freed) {
            return musaErrorInvalidValue; // freed twice
          }
          known->second.freed = true;
        }
      }
      return submit(
          found, KernelOperation{make_task("musaFreeAsync", [](void* memory) { return release(memory); }, pointer, nullptr)});
    });
  });
}

musaError_t musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device) {
  return api<"musaDeviceGetDefaultMemPool">([&] {
    if (find_device(device) == nullptr) {
      return musaErrorInvalidDevice;
    }
    if (pool == nullptr) {
      return musaErrorInvalidValue;
    }
    const PoolLock lock(pools().mutex);
    *pool = default_pool(pools(), device);
    return musaSuccess;
  });
}

musaError_t musaDeviceGetMemPool(musaMemPool_t* pool, int device) {
  return api<"musaDeviceGetMemPool">([&] {
    if (find_device(device) == nullptr) {
      return musaErrorInvalidDevice;
    }
    if (pool == nullptr) {
      return musaErrorInvalidValue;
    }
    const PoolLock lock(pools().mutex);
    *pool = current_pool(pools(), device);
    return musaSuccess;
  });
}

musaError_t musaDeviceSetMemPool(int device, musaMemPool_t pool) {
  return api<"musaDeviceSetMemPool">([&] {
    if (find_device(device) == nullptr) {
      return musaErrorInvalidDevice;
    }
    return with_pool(pool, [&](Pools& all, MUmemPoolHandle_st& found) {
      if (found.device != device) {
        return musaErrorInvalidValue;
      }
      all.current[device] = pool;
      return musaSuccess;
    });
  });
}

musaError_t musaMemPoolCreate(musaMemPool_t* pool, const musaMemPoolProps* properties) {
  return api<"musaMemPoolCreate">([&] {
    if (pool == nullptr || properties == nullptr || properties->allocType != musaMemAllocationTypePinned ||
        properties->location.type != musaMemLocationTypeDevice) {
      return musaErrorInvalidValue;
    }
    if (find_device(properties->location.id) == nullptr) {
      return musaErrorInvalidDevice;
    }
    if (properties->handleTypes != musaMemHandleTypeNone) {
      return musaErrorNotSupported; // pools shared between processes
    }
    auto made = std::make_shared<MUmemPoolHandle_st>();
    made->device = properties->location.id;
    made->limit = properties->maxSize;
    const PoolLock lock(pools().mutex);
    *pool = made.get();
    pools().pools[made.get()] = std::move(made);
    return musaSuccess;
  });
}

// Allocations of the pool stay valid.
musaError_t musaMemPoolDestroy(musaMemPool_t pool) {
  return api<"musaMemPoolDestroy", kReleases>([&] {
    return with_pool(pool, [&](Pools& all, MUmemPoolHandle_st& found) {
      if (found.built_in) {
        return musaErrorInvalidValue;
      }
      if (const auto current = all.current.find(found.device); current != all.current.end() && current->second == pool) {
        all.current.erase(current);
      }
      all.pools.erase(pool);
      return musaSuccess;
    });
  });
}

musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return api<"musaMemPoolSetAttribute">([&] {
    if (value == nullptr) {
      return musaErrorInvalidValue;
    }
    return with_pool(pool, [&](Pools&, MUmemPoolHandle_st& found) {
      switch (attribute) {
        case musaMemPoolReuseFollowEventDependencies:
        case musaMemPoolReuseAllowOpportunistic:
        case musaMemPoolReuseAllowInternalDependencies:
          found.reuse[attribute - musaMemPoolReuseFollowEventDependencies] = *static_cast<int*>(value) != 0;
          return musaSuccess;
        case musaMemPoolAttrReleaseThreshold:
          found.release_threshold = *static_cast<uint64_t*>(value);
          return musaSuccess;
        case musaMemPoolAttrReservedMemHigh:
        case musaMemPoolAttrUsedMemHigh:
          if (*static_cast<uint64_t*>(value) != 0) {
            return musaErrorInvalidValue; // a high-water mark can only be reset
          }
          found.most_used = found.used;
          return musaSuccess;
        default: return musaErrorInvalidValue;
      }
    });
  });
}

musaError_t musaMemPoolGetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return api<"musaMemPoolGetAttribute">([&] {
    if (value == nullptr) {
      return musaErrorInvalidValue;
    }
    return with_pool(pool, [&](Pools&, MUmemPoolHandle_st& found) {
      switch (attribute) {
        case musaMemPoolReuseFollowEventDependencies:
        case musaMemPoolReuseAllowOpportunistic:
        case musaMemPoolReuseAllowInternalDependencies:
          *static_cast<int*>(value) = found.reuse[attribute - musaMemPoolReuseFollowEventDependencies];
          return musaSuccess;
        case musaMemPoolAttrReleaseThreshold: *static_cast<uint64_t*>(value) = found.release_threshold; return musaSuccess;
        case musaMemPoolAttrReservedMemCurrent:
        case musaMemPoolAttrUsedMemCurrent: *static_cast<uint64_t*>(value) = found.used; return musaSuccess;
        case musaMemPoolAttrReservedMemHigh:
        case musaMemPoolAttrUsedMemHigh: *static_cast<uint64_t*>(value) = found.most_used; return musaSuccess;
        default: return musaErrorInvalidValue;
      }
    });
  });
}

musaError_t musaMemPoolTrimTo(musaMemPool_t pool, size_t) {
  return api<"musaMemPoolTrimTo">(
      [&] { return with_pool(pool, [](Pools&, MUmemPoolHandle_st&) { return musaSuccess; }); }); // nothing is cached
}

// Checked and stored without effect: memory is host memory, so every device can access it.
musaError_t musaMemPoolSetAccess(musaMemPool_t pool, const musaMemAccessDesc* access, size_t count) {
  return api<"musaMemPoolSetAccess">([&] {
    if (access == nullptr && count != 0) {
      return musaErrorInvalidValue;
    }
    for (size_t i = 0; i < count; ++i) {
      const unsigned flags = access[i].flags;
      if (access[i].location.type != musaMemLocationTypeDevice || (flags != 0 && flags != 1 && flags != 3)) {
        return musaErrorInvalidValue;
      }
      if (find_device(access[i].location.id) == nullptr) {
        return musaErrorInvalidDevice;
      }
    }
    return with_pool(pool, [&](Pools&, MUmemPoolHandle_st& found) {
      for (size_t i = 0; i < count; ++i) {
        if (access[i].location.id == found.device && access[i].flags != musaEmulatorAccessReadWrite) {
          return musaErrorInvalidValue; // a device always has access to its own pool
        }
      }
      for (size_t i = 0; i < count; ++i) {
        found.access[access[i].location.id] = access[i].flags;
      }
      return musaSuccess;
    });
  });
}

musaError_t musaMemPoolGetAccess(musaMemAccessFlags* flags, musaMemPool_t pool, musaMemLocation* location) {
  return api<"musaMemPoolGetAccess">([&] {
    if (flags == nullptr || location == nullptr || location->type != musaMemLocationTypeDevice) {
      return musaErrorInvalidValue;
    }
    if (find_device(location->id) == nullptr) {
      return musaErrorInvalidDevice;
    }
    return with_pool(pool, [&](Pools&, MUmemPoolHandle_st& found) {
      const auto known = found.access.find(location->id);
      *flags = location->id == found.device ? musaEmulatorAccessReadWrite
          : known != found.access.end()     ? known->second
                                            : musaEmulatorAccessNone;
      return musaSuccess;
    });
  });
}
