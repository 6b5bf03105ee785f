// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Stream-ordered allocation. Memory is allocated immediately and freed when the stream reaches musaFreeAsync. The
// pool of a device only counts allocations; it caches no memory.
#include "pool.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "api_support.h"
#include "engine/capture.h"
#include "engine/kernel.h"
#include "engine/memory.h"

struct MUmemPoolHandle_st {
  uint64_t used = 0, most_used = 0;
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};
};

// The C declarations; for C++ the header has templates with these names.
MUSA_EXTERN_C_BEGIN
MUSA_PUBLIC musaError_t musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream);
MUSA_PUBLIC musaError_t musaFreeAsync(void* pointer, musaStream_t stream);
MUSA_PUBLIC musaError_t musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device);
MUSA_PUBLIC musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value);
MUSA_PUBLIC musaError_t musaMemPoolGetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value);
MUSA_PUBLIC musaError_t musaMemPoolTrimTo(musaMemPool_t pool, size_t bytes);
MUSA_EXTERN_C_END

namespace musa_emulator {
namespace {

struct Allocation {
  musaMemPool_t pool;
  size_t bytes;
  bool freed = false; // musaFreeAsync is pending on a stream
};

// Guarded by its mutex. No other lock is acquired while it is held.
struct Pools {
  std::mutex mutex;
  std::map<int, MUmemPoolHandle_st> of_device; // the default pool of each device, in place
  std::map<void*, Allocation> allocations;
};

Pools& pools() {
  static auto* instance = new Pools;
  return *instance;
}

using PoolLock = std::lock_guard<std::mutex>;

musaError_t allocate(void** pointer, size_t bytes, Stream& stream) {
  if (pointer == nullptr) {
    return musaErrorInvalidValue;
  }
  // Allocations in graphs are not emulated.
  if (const musaError_t status = forbid_on_capturing(stream); status != musaSuccess) {
    return status;
  }
  if (bytes == 0) {
    *pointer = nullptr;
    return musaSuccess;
  }
  const int device = stream.device->ordinal;
  const musaError_t status = allocate_device(device, bytes, pointer);
  if (status == musaSuccess) {
    Pools& all = pools();
    const PoolLock lock(all.mutex);
    MUmemPoolHandle_st& pool = all.of_device[device];
    pool.used += bytes;
    pool.most_used = std::max(pool.most_used, pool.used);
    all.allocations.insert_or_assign(*pointer, Allocation{&pool, bytes});
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
  for (auto& [device, pool] : all.of_device) {
    if (&pool == handle) {
      return body(pool);
    }
  }
  return musaErrorInvalidValue;
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
      [&] { return with_stream(stream, [&](Stream& found) { return allocate(pointer, bytes, found); }); });
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
          found,
          KernelOperation{make_task("musaFreeAsync", [](void* memory) { return release(memory); }, pointer, nullptr)});
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
    *pool = &pools().of_device[device];
    return musaSuccess;
  });
}

musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute, void* value) {
  return api<"musaMemPoolSetAttribute">([&] {
    if (value == nullptr) {
      return musaErrorInvalidValue;
    }
    return with_pool(pool, [&](MUmemPoolHandle_st& found) {
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
    return with_pool(pool, [&](MUmemPoolHandle_st& found) {
      switch (attribute) {
        case musaMemPoolReuseFollowEventDependencies:
        case musaMemPoolReuseAllowOpportunistic:
        case musaMemPoolReuseAllowInternalDependencies:
          *static_cast<int*>(value) = found.reuse[attribute - musaMemPoolReuseFollowEventDependencies];
          return musaSuccess;
        case musaMemPoolAttrReleaseThreshold:
          *static_cast<uint64_t*>(value) = found.release_threshold;
          return musaSuccess;
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
      [&] { return with_pool(pool, [](MUmemPoolHandle_st&) { return musaSuccess; }); }); // nothing is cached
}
