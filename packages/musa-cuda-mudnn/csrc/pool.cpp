// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "pool.h"

// The build defines C10_CUDA_NO_CMAKE_CONFIGURE_FILE, because a CPU build of torch lacks that generated header.
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace musa_emulator::dnn {
namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

// Returns torch.cuda's allocator, or nullptr. Looked up by name and not linked, so that this library also loads with
// a CPU build.
CUDAAllocator* allocator() {
  static const auto* const place = [] {
    void* const library = dlopen("libc10_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    return library != nullptr ? static_cast<std::atomic<CUDAAllocator*>*>(
                                    dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE"))
                              : nullptr;
  }();
  return place != nullptr ? place->load() : nullptr;
}

// The pool id. Distinct from the ids of torch.cuda's graphs, which count up from 1.
unsigned long long pool_of(unsigned long long capture) {
  return std::numeric_limits<unsigned long long>::max() - capture;
}

// Returns a function of the CUDA runtime that libmusart has loaded, or nullptr.
template <class Function>
Function* runtime_function(const char* name) {
  static void* const library =
      dlopen(("libcudart.so." + std::to_string(CUDART_VERSION / 1000)).c_str(), RTLD_NOLOAD | RTLD_LAZY);
  return library != nullptr ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

// The pool of a capture. Each beginAllocateToPool() counts as a use, which releasePool() removes.
struct Pool {
  int device;
  int uses = 0;
  std::shared_ptr<std::atomic<bool>> unused; // set once CUDA has destroyed the graph and its instances
};

std::mutex mutex; // guards pools
std::map<unsigned long long, Pool>& pools() {
  static auto* const all = new std::map<unsigned long long, Pool>; // leaked: threads may capture at exit
  return *all;
}

// Sets the flag when the graph and its instances are destroyed. CUDA calls the destructor on its own thread, where no
// CUDA call is allowed.
void watch(cudaGraph_t graph, const std::shared_ptr<std::atomic<bool>>& unused) {
  static auto* const create = runtime_function<decltype(cudaUserObjectCreate)>("cudaUserObjectCreate");
  static auto* const retain = runtime_function<decltype(cudaGraphRetainUserObject)>("cudaGraphRetainUserObject");
  static auto* const last_error = runtime_function<decltype(cudaGetLastError)>("cudaGetLastError");
  if (graph == nullptr || create == nullptr || retain == nullptr || last_error == nullptr) {
    return;
  }
  using Flag = std::shared_ptr<std::atomic<bool>>;
  auto own = std::make_unique<Flag>(unused);
  const auto destroy = [](void* flag) {
    const std::unique_ptr<Flag> last(static_cast<Flag*>(flag));
    last->get()->store(true);
  };
  cudaUserObject_t object = nullptr;
  if (create(&object, own.get(), destroy, 1, cudaUserObjectNoDestructorSync) != cudaSuccess) {
    last_error(); // the pool is never released
    return;
  }
  own.release();
  if (retain(graph, object, 1, cudaGraphUserObjectMove) != cudaSuccess) {
    last_error();
  }
}

// Releases the pools of destroyed graphs; the allocator then reuses or frees their memory.
void release_unused(CUDAAllocator& memory) {
  for (auto one = pools().begin(); one != pools().end();) {
    Pool& pool = one->second;
    if (!pool.unused->load()) {
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
      const auto [one, is_new] = pools().try_emplace(capture, Pool{device, 0, nullptr});
      if (is_new) {
        one->second.unused = std::make_shared<std::atomic<bool>>(false);
        release_unused(*memory);
        watch(static_cast<cudaGraph_t>(graph), one->second.unused);
      }
      ++one->second.uses;
    }
    memory->beginAllocateToPool(
        static_cast<c10::DeviceIndex>(device), {pool_of(capture), 0}, [stream](cudaStream_t of) { return of == stream; });
  }
}

void end_pool(int device, unsigned long long capture) {
  if (CUDAAllocator* const memory = allocator()) {
    memory->endAllocateToPool(static_cast<c10::DeviceIndex>(device), {pool_of(capture), 0});
  }
}

} // namespace musa_emulator::dnn
