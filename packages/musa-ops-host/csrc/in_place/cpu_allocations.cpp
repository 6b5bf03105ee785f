// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "cpu_allocations.h"

#include <c10/core/CPUAllocator.h>
#include <c10/musa/MUSACachingAllocator.h>

#include <mutex>
#include <unordered_map>
#include <utility>

namespace musa_ops_host {

constinit thread_local CpuMemory cpu_allocations = CpuMemory::Host;

namespace {

using c10::DeviceType;

constinit thread_local std::span<OfferedMemory> offered_memory;

// Empty if no memory of that size was offered.
c10::DataPtr take_offered(size_t nbytes) {
  for (OfferedMemory& offer : offered_memory) {
    if (offer.nbytes == nbytes && offer.data != nullptr) {
      void* data = std::exchange(offer.data, nullptr);
      // Raw allocations (oneDNN's) need the context; nothing is deleted.
      return c10::DataPtr(data, data, &c10::detail::deleteNothing, c10::Device(DeviceType::CPU));
    }
  }
  return {};
}

// Addresses that recorded calls may use, with the number of calls. The mutex is a leaf.
struct GraphMemory {
  std::mutex mutex;
  std::unordered_map<void*, size_t> calls;

  bool contains(void* data) {
    std::lock_guard<std::mutex> lock(mutex);
    return calls.count(data) != 0;
  }
};

GraphMemory& graph_memory() {
  static GraphMemory& instance = *new GraphMemory();
  return instance;
}

c10::DataPtr allocate_on_device(size_t nbytes) {
  // While it waits for the stream, this thread may run queued work, whose allocations are not the kernel's.
  struct Paused {
    Paused() { cpu_allocations = CpuMemory::Host; }
    ~Paused() { cpu_allocations = CpuMemory::Device; }
  } const paused;
  return c10::musa::MUSACachingAllocator::allocate_for_host(nbytes);
}

class ScopedCpuAllocator final : public c10::Allocator {
 public:
  explicit ScopedCpuAllocator(c10::Allocator* base) : base_(base) { base_deleter_ = base->raw_deleter(); }

  c10::DataPtr allocate(size_t nbytes) override {
    if (C10_UNLIKELY(cpu_allocations != CpuMemory::Host)) {
      if (C10_LIKELY(cpu_allocations == CpuMemory::Device)) {
        return allocate_on_device(nbytes);
      }
      if (c10::DataPtr offered = take_offered(nbytes)) {
        return offered;
      }
    }
    return base_->allocate(nbytes);
  }

  c10::DeleterFnPtr raw_deleter() const override {
    // raw_allocate() may return either kind of memory, so its deleter checks the address.
    return &delete_either;
  }

  void copy_data(void* dest, const void* src, std::size_t count) const override { base_->copy_data(dest, src, count); }

 private:
  static void delete_either(void* pointer) {
    if (graph_memory().contains(pointer)) {
      return;
    }
    if (c10::musa::MUSACachingAllocator::owns(pointer)) {
      c10::musa::MUSACachingAllocator::raw_delete(pointer);
    } else {
      base_deleter_(pointer);
    }
  }

  c10::Allocator* base_;
  static inline c10::DeleterFnPtr base_deleter_ = nullptr;
};

} // namespace

void offer_memory(std::span<OfferedMemory> memory) { offered_memory = memory; }

void begin_graph_use(void* data) {
  GraphMemory& memory = graph_memory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  ++memory.calls[data];
}

void end_graph_use(void* data) {
  GraphMemory& memory = graph_memory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  const auto found = memory.calls.find(data);
  if (found != memory.calls.end() && --found->second == 0) {
    memory.calls.erase(found);
  }
}

void install_scoped_cpu_allocator() {
  static const bool installed = [] {
    static ScopedCpuAllocator allocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(&allocator, /*priority=*/1);
    return true;
  }();
  (void)installed;
}

} // namespace musa_ops_host
