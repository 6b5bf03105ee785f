// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "pool.h"

// The build says C10_CUDA_NO_CMAKE_CONFIGURE_FILE: a CPU build of torch has the headers without that file.
#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <limits>

namespace musa_emulator::dnn {
namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

// torch.cuda's allocator, or null. By name: the library is not linked, so that this one loads beside a CPU build.
CUDAAllocator* allocator() {
  static const auto* const place = [] {
    void* const library = dlopen("libc10_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    return library != nullptr ? static_cast<std::atomic<CUDAAllocator*>*>(
                                    dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE"))
                              : nullptr;
  }();
  return place != nullptr ? place->load() : nullptr;
}

// Unlike those of torch.cuda's graphs, which count up from 1.
unsigned long long pool_of(unsigned long long capture) {
  return std::numeric_limits<unsigned long long>::max() - capture;
}

} // namespace

void begin_pool(int device, unsigned long long capture, void* stream) {
  if (CUDAAllocator* const memory = allocator()) {
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
