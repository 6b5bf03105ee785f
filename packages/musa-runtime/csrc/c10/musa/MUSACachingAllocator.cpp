// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSACachingAllocator.h>

#include <c10/musa/MUSADeviceCachingAllocator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAGuard.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace c10::musa::MUSACachingAllocator {
namespace {

// Caches by device index. Leaked: tensors are freed until the very end of the process, after static destructors.
class DeviceCaches {
 public:
  DeviceCaches() {
    for (int i = 0; i < C10_COMPILE_TIME_MAX_MUSA_DEVICES; ++i) {
      caches_[i] = new DeviceCachingAllocator(static_cast<DeviceIndex>(i));
    }
  }

  DeviceCachingAllocator& operator[](DeviceIndex device) {
    return *caches_[device];
  }

 private:
  std::array<DeviceCachingAllocator*, C10_COMPILE_TIME_MAX_MUSA_DEVICES> caches_{};
};

DeviceCachingAllocator& cache(DeviceIndex device) {
  static auto& caches = *new DeviceCaches();
  return caches[device];
}

DeviceCachingAllocator& checked_cache(DeviceIndex device) {
  const DeviceIndex index = resolve_device_index(device);
  check_device_index(index);
  return cache(index);
}

// The device whose cache the thread used last: where the next pointer to be freed most likely lives. A pointer alone does
// not tell its device, and asking the SDK would fail after its shutdown.
thread_local DeviceIndex recent_device = 0;

// Calls visit(cache) until one returns true, the most likely device first.
template <typename Visit>
bool visit_caches(Visit visit) {
  const DeviceIndex first = recent_device;
  if (C10_LIKELY(visit(cache(first)))) {
    return true;
  }
  const DeviceIndex count = device_count();
  for (DeviceIndex device = 0; device < count; ++device) {
    if (device != first && visit(cache(device))) {
      recent_device = device;
      return true;
    }
  }
  return false;
}

void* allocate_on(DeviceIndex device, size_t nbytes, musaStream_t stream) {
  if (nbytes == 0) {
    return nullptr;
  }
  recent_device = device;
  return cache(device).malloc(nbytes, stream);
}

// Runs in destructors, on any thread, also while the process ends: must not throw.
void delete_allocation(void* ptr) noexcept {
  if (ptr == nullptr) {
    return;
  }
  try {
    if (!visit_caches([ptr](DeviceCachingAllocator& device) { return device.free(ptr); })) {
      TORCH_WARN("Device memory at ", ptr, " was freed, but the musa caching allocator does not know it.");
    }
  } catch (const c10::Error& error) {
    TORCH_WARN("Device memory at ", ptr, " could not be freed: ", error.what_without_backtrace());
  } catch (const std::exception& error) {
    TORCH_WARN("Device memory at ", ptr, " could not be freed: ", error.what());
  }
}

class MUSADeviceAllocator final : public c10::DeviceAllocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    const DeviceIndex device = current_device();
    return make(device, nbytes, Device(DeviceType::PrivateUse1, device));
  }

  DataPtr make(DeviceIndex device, size_t nbytes, Device label) {
    void* ptr = allocate_on(device, nbytes, getCurrentMUSAStream(device).stream());
    return {ptr, ptr, &delete_allocation, label};
  }

  DeleterFnPtr raw_deleter() const override {
    return &delete_allocation;
  }

  void copy_data(void* dest, const void* src, std::size_t count) const override {
    C10_MUSA_CHECK(
        musaMemcpyAsync(dest, src, count, musaMemcpyDeviceToDevice, getCurrentMUSAStream().stream()));
  }

  bool initialized() override {
    return device_count() > 0;
  }

  void emptyCache(MempoolId_t id) override {
    const DeviceIndex count = device_count();
    for (DeviceIndex device = 0; device < count; ++device) {
      cache(device).empty_cache(id);
    }
  }

  void recordStream(const DataPtr& data, Stream stream) override {
    // Foreign memory (from_blob, IPC, another allocator) has its own owner, who knows its streams.
    void* ptr = data.get_context();
    if (ptr == nullptr || data.get_deleter() != &delete_allocation) {
      return;
    }
    const MUSAStream use(stream);
    visit_caches([&](DeviceCachingAllocator& device) { return device.record_stream(ptr, use); });
  }

  DeviceStats getDeviceStats(DeviceIndex device) override {
    return checked_cache(device).stats();
  }
  void resetAccumulatedStats(DeviceIndex device) override {
    checked_cache(device).reset_accumulated_stats();
  }
  void resetPeakStats(DeviceIndex device) override {
    checked_cache(device).reset_peak_stats();
  }

  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) override {
    const MUSAGuard guard(resolve_device_index(device));
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    C10_MUSA_CHECK(musaMemGetInfo(&free_bytes, &total_bytes));
    return {free_bytes, total_bytes};
  }
};

MUSADeviceAllocator& instance() {
  static auto& allocator = *new MUSADeviceAllocator();
  return allocator;
}

[[maybe_unused]] const bool registered = [] {
  SetAllocator(DeviceType::PrivateUse1, &instance());
  return true;
}();

} // namespace

c10::DeviceAllocator* get() {
  return &instance();
}

void* raw_alloc(size_t nbytes) {
  const DeviceIndex device = current_device();
  return allocate_on(device, nbytes, getCurrentMUSAStream(device).stream());
}

void* raw_alloc_with_stream(size_t nbytes, musaStream_t stream) {
  return allocate_on(current_device(), nbytes, stream);
}

void raw_delete(void* ptr) {
  if (ptr == nullptr) {
    return;
  }
  TORCH_CHECK(
      visit_caches([ptr](DeviceCachingAllocator& device) { return device.free(ptr); }),
      "Cannot free ", ptr, ": it is not the start of an allocation of the musa caching allocator.\n",
      "Likely causes: the pointer was freed before, points inside an allocation, or came from another allocator.");
}

c10::DeleterFnPtr deleter() {
  return &delete_allocation;
}

c10::DataPtr allocate_as(size_t nbytes, c10::Device label) {
  return instance().make(current_device(), nbytes, label);
}

void emptyCache(c10::MempoolId_t id) {
  instance().emptyCache(id);
}

void recordStream(const c10::DataPtr& data, MUSAStream stream) {
  instance().recordStream(data, stream.unwrap());
}

DeviceStats getDeviceStats(DeviceIndex device) {
  return instance().getDeviceStats(device);
}

void resetPeakStats(DeviceIndex device) {
  instance().resetPeakStats(device);
}

void resetAccumulatedStats(DeviceIndex device) {
  instance().resetAccumulatedStats(device);
}

void setMemoryFraction(double fraction, DeviceIndex device) {
  TORCH_CHECK_VALUE(
      fraction >= 0.0 && fraction <= 1.0, "The fraction of device memory must be in [0, 1], got ", fraction, ".");
  checked_cache(device).set_memory_fraction(fraction);
}

double getMemoryFraction(DeviceIndex device) {
  return checked_cache(device).memory_fraction();
}

std::pair<size_t, size_t> cacheInfo(DeviceIndex device) {
  return checked_cache(device).cache_info();
}

std::vector<SegmentInfo> snapshot() {
  std::vector<SegmentInfo> segments;
  const DeviceIndex count = device_count();
  for (DeviceIndex device = 0; device < count; ++device) {
    auto more = cache(device).snapshot();
    segments.insert(
        segments.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return segments;
}

void* getBaseAllocation(void* ptr, size_t* size) {
  void* base = nullptr;
  visit_caches([&](DeviceCachingAllocator& device) {
    base = device.base_allocation(ptr, size);
    return base != nullptr;
  });
  TORCH_CHECK(base != nullptr, ptr, " is not the start of a live allocation of the musa caching allocator.");
  return base;
}

bool owns(const void* ptr) {
  return ptr != nullptr && visit_caches([ptr](DeviceCachingAllocator& device) { return device.owns(ptr); });
}

bool isEnabled() {
  static const bool enabled = [] {
    const char* value = std::getenv("PYTORCH_NO_MUSA_MEMORY_CACHING");
    return value == nullptr || std::strcmp(value, "1") != 0;
  }();
  return enabled;
}

double bench(size_t nbytes, int iterations) {
  TORCH_CHECK_VALUE(nbytes > 0 && iterations > 0, "bench needs a size and a number of iterations above 0.");
  raw_delete(raw_alloc(nbytes)); // the first one pays for the segment
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < iterations; ++i) {
    raw_delete(raw_alloc(nbytes));
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / iterations;
}

} // namespace c10::musa::MUSACachingAllocator
