// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "pool.h"

#include "support/hooks.h"

// The build defines C10_CUDA_NO_CMAKE_CONFIGURE_FILE, because a CPU build of torch lacks that generated header.
#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

namespace musa_emulator::dnn {
namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

// Returns torch.cuda's allocator, or nullptr. Looked up by name and not linked, so that this library also loads with
// a CPU build.
CUDAAllocator* allocator() {
  static const auto* const place = [] {
    void* const library = dlopen("libc10_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    return library != nullptr
        ? static_cast<std::atomic<CUDAAllocator*>*>(dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE"))
        : nullptr;
  }();
  return place != nullptr ? place->load() : nullptr;
}

// The pool id. Distinct from the ids of torch.cuda's graphs, which count up from 1.
unsigned long long pool_of(unsigned long long capture) {
  return std::numeric_limits<unsigned long long>::max() - capture;
}

// The pool of a capture. Each beginAllocateToPool() counts as a use, which releasePool() removes.
struct Pool {
  int device;
  int uses = 0;
  std::weak_ptr<void> graph; // kept with the graph; expires with it and its instances
};

std::mutex mutex; // guards pools
std::map<unsigned long long, Pool>& pools() {
  static auto* const all = new std::map<unsigned long long, Pool>; // leaked: threads may capture at exit
  return *all;
}

// Releases the pools of destroyed graphs; the allocator then reuses or frees their memory.
void release_unused(CUDAAllocator& memory) {
  for (auto one = pools().begin(); one != pools().end();) {
    Pool& pool = one->second;
    if (!pool.graph.expired()) {
      ++one;
      continue;
    }
    try {
      for (; pool.uses > 0; --pool.uses) {
        memory.releasePool(static_cast<c10::DeviceIndex>(pool.device), {pool_of(one->first), 0});
      }
    } catch (const std::exception&) { // a replaced or reset allocator no longer has the pool
    }
    one = pools().erase(one);
  }
}

} // namespace

void begin_pool(int device, unsigned long long capture, void* stream, void* graph) {
  if (CUDAAllocator* const memory = allocator()) {
    {
      const std::lock_guard lock(mutex);
      const auto [one, is_new] = pools().try_emplace(capture, Pool{device, 0, {}});
      if (is_new) {
        const auto kept = std::make_shared<char>();
        one->second.graph = kept;
        musa_cuda::keep_with_graph(reinterpret_cast<uint64_t>(graph), kept);
        release_unused(*memory);
      }
      ++one->second.uses;
    }
    memory->beginAllocateToPool(
        static_cast<c10::DeviceIndex>(device), {pool_of(capture), 0},
        [stream](cudaStream_t of) { return of == stream; });
  }
}

void end_pool(int device, unsigned long long capture) {
  if (CUDAAllocator* const memory = allocator()) {
    memory->endAllocateToPool(static_cast<c10::DeviceIndex>(device), {pool_of(capture), 0});
  }
}

} // namespace musa_emulator::dnn
