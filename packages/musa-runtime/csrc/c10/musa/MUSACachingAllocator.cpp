// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSACachingAllocator.h>

#include <c10/musa/allocator/MUSAAllocatorHooks.h>
#include <c10/musa/allocator/MUSADeviceCachingAllocator.h>
#include <c10/musa/MUSAEnvironment.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAKernelGuard.h>

#include <array>
#include <atomic>
#include <chrono>

namespace c10::musa::MUSACachingAllocator {
namespace {

using DeviceCaches = std::array<DeviceCachingAllocator*, C10_COMPILE_TIME_MAX_MUSA_DEVICES>;

C10_NOINLINE const DeviceCaches& make_caches() {
  auto& caches = *new DeviceCaches();
  for (size_t i = 0; i < caches.size(); ++i) {
    caches[i] = new DeviceCachingAllocator(static_cast<DeviceIndex>(i));
  }
  return caches;
}

// Leaked: tensors are freed until the end of the process, after static destructors.
DeviceCachingAllocator& cache(DeviceIndex device) {
  static const DeviceCaches& caches = make_caches();
  return *caches[device];
}

DeviceCachingAllocator& checked_cache(DeviceIndex device) {
  const DeviceIndex index = resolve_device_index(device);
  check_device_index(index);
  return cache(index);
}

// The device whose cache most likely has the next pointer to be freed: the device is not known from the pointer, and
// querying the SDK would fail after its shutdown. Most processes use one device; only those with more pay for a
// thread-local variable at each allocation.
constexpr DeviceIndex kNoDevice = -1;
constexpr DeviceIndex kSeveralDevices = -2;
std::atomic<DeviceIndex> used_device{kNoDevice}; // the device of all memory so far, or one of the constants above
thread_local DeviceIndex recent_device = 0; // if there are several, the device that this thread used last

C10_NOINLINE void note_other_device(DeviceIndex device) {
  DeviceIndex used = kNoDevice;
  if (!used_device.compare_exchange_strong(used, device) && used != device) {
    used_device.store(kSeveralDevices);
    recent_device = device;
  }
}

void note_device(DeviceIndex device) {
  if (C10_UNLIKELY(used_device.load(std::memory_order_relaxed) != device)) {
    note_other_device(device);
  }
}

DeviceIndex likely_device() {
  const DeviceIndex used = used_device.load(std::memory_order_relaxed);
  return C10_LIKELY(used >= 0) ? used : recent_device;
}

// Calls visit(cache) until one returns true, the most likely device first.
template <typename Visit>
bool visit_caches(Visit visit) {
  const DeviceIndex first = likely_device();
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
  note_device(device);
  return cache(device).malloc(nbytes, stream);
}

// Runs in destructors, on any thread, also while the process ends: must not throw.
void delete_allocation(void* ptr) noexcept {
  if (ptr == nullptr) {
    return;
  }
  try {
    if (!visit_caches([ptr](DeviceCachingAllocator& device) { return device.free(ptr); })) {
      TORCH_WARN("Device memory at ", ptr, " was freed, but the musa caching allocator did not allocate it.");
    }
  } catch (const c10::Error& error) {
    TORCH_WARN("Device memory at ", ptr, " could not be freed: ", error.what_without_backtrace());
  } catch (const std::exception& error) {
    TORCH_WARN("Device memory at ", ptr, " could not be freed: ", error.what());
  }
}

class MUSADeviceAllocator final : public MUSAAllocator {
 public:
  std::string name() override { return "native"; }

  void* raw_alloc(size_t nbytes) override {
    const DeviceIndex device = current_device();
    return allocate_on(device, nbytes, current_stream_handle(device));
  }

  void* raw_alloc_with_stream(size_t nbytes, musaStream_t stream) override {
    return allocate_on(current_device(), nbytes, stream);
  }

  void raw_delete(void* ptr) override {
    if (ptr == nullptr) {
      return;
    }
    TORCH_CHECK(
        visit_caches([ptr](DeviceCachingAllocator& device) { return device.free(ptr); }), "Cannot free ", ptr,
        ": it is not the start of an allocation of the musa caching allocator.\n",
        "Likely causes: the pointer was freed before, points inside an allocation, or came from another allocator.");
  }

  DataPtr allocate(size_t nbytes) override {
    const DeviceIndex device = current_device();
    return make(device, nbytes, Device(DeviceType::PrivateUse1, device));
  }

  DataPtr make(DeviceIndex device, size_t nbytes, Device label) {
    void* ptr = allocate_on(device, nbytes, current_stream_handle(device));
    return {ptr, ptr, &delete_allocation, label};
  }

  DeleterFnPtr raw_deleter() const override { return &delete_allocation; }

  bool owns(const void* ptr) override {
    return ptr != nullptr && visit_caches([ptr](DeviceCachingAllocator& device) { return device.owns(ptr); });
  }

  void emptyCache(MempoolId_t id) override {
    const DeviceIndex count = device_count();
    for (DeviceIndex device = 0; device < count; ++device) {
      cache(device).empty_cache(id);
    }
  }

  void recordStream(const DataPtr& data, Stream stream) override {
    // Foreign memory (from_blob, another allocator) has its own owner, which tracks its streams.
    void* ptr = data.get_context();
    if (ptr == nullptr || data.get_deleter() != &delete_allocation) {
      record_stream_of_foreign(data, MUSAStream(stream));
      return;
    }
    const MUSAStream use(stream);
    visit_caches([&](DeviceCachingAllocator& device) { return device.record_stream(ptr, use); });
  }

  DeviceStats getDeviceStats(DeviceIndex device) override { return checked_cache(device).stats(); }
  void resetAccumulatedStats(DeviceIndex device) override { checked_cache(device).reset_accumulated_stats(); }
  void resetPeakStats(DeviceIndex device) override { checked_cache(device).reset_peak_stats(); }
};

MUSADeviceAllocator& instance() {
  static auto& allocator = *new MUSADeviceAllocator();
  return allocator;
}

// Null for the caching allocator.
std::atomic<MUSAAllocator*> replacement{nullptr};

// Raises if another allocator replaced the caching allocator.
void require_native(const char* what) {
  TORCH_CHECK(
      replacement.load(std::memory_order_acquire) == nullptr, what,
      " needs the caching allocator, but musa memory comes "
      "from the allocator '",
      get()->name(), "' in this process.\n",
      "Fix: do not call change_current_allocator(); a MemPool can take its memory from an allocator of your own.");
}

[[maybe_unused]] const bool allocator_registered = [] {
  SetAllocator(DeviceType::PrivateUse1, &instance());
  return true;
}();

class OnDevice final : public c10::Allocator {
 public:
  explicit OnDevice(DeviceIndex device) : device_(DeviceType::PrivateUse1, device) {}

  DataPtr allocate(size_t nbytes) override {
    if (C10_LIKELY(replacement.load(std::memory_order_acquire) == nullptr)) {
      return instance().make(device_.index(), nbytes, device_);
    }
    const MUSAKernelGuard guard(device_.index());
    return get()->allocate(nbytes);
  }
  DeleterFnPtr raw_deleter() const override { return get()->raw_deleter(); }
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    const MUSAKernelGuard guard(device_.index());
    get()->copy_data(dest, src, count);
  }

 private:
  const Device device_;
};

} // namespace

c10::Allocator* on(DeviceIndex device) {
  // Leaked: storages point to them until the end of the process.
  static auto& allocators = *[] {
    auto* made = new std::array<OnDevice*, C10_COMPILE_TIME_MAX_MUSA_DEVICES>;
    for (int i = 0; i < C10_COMPILE_TIME_MAX_MUSA_DEVICES; ++i) {
      (*made)[i] = new OnDevice(static_cast<DeviceIndex>(i));
    }
    return made;
  }();
  return allocators[device];
}

MUSAAllocator* get() {
  MUSAAllocator* other = replacement.load(std::memory_order_acquire);
  return C10_LIKELY(other == nullptr) ? &instance() : other;
}

void changeCurrentAllocator(std::shared_ptr<MUSAAllocator> allocator) {
  TORCH_CHECK_VALUE(allocator != nullptr, "There is no allocator to change to.");
  TORCH_CHECK(
      replacement.load() == nullptr, "The allocator of musa memory was changed before, to '", get()->name(),
      "'; the change is permanent.");
  for (int device = 0; device < C10_COMPILE_TIME_MAX_MUSA_DEVICES; ++device) {
    TORCH_CHECK(
        cache(static_cast<DeviceIndex>(device)).untouched(),
        "The allocator of musa memory cannot be changed any more: the present one has allocated memory of musa:",
        device, ".\nFix: call change_current_allocator() before the first tensor on the device.");
  }
  // Leaked: tensors are freed until the end of the process.
  auto* const kept = new std::shared_ptr<MUSAAllocator>(std::move(allocator));
  replacement.store(kept->get(), std::memory_order_release);
  SetAllocator(DeviceType::PrivateUse1, kept->get());
}

void* raw_alloc(size_t nbytes) { return get()->raw_alloc(nbytes); }

void* raw_alloc_with_stream(size_t nbytes, musaStream_t stream) { return get()->raw_alloc_with_stream(nbytes, stream); }

void raw_delete(void* ptr) { get()->raw_delete(ptr); }

c10::DeleterFnPtr deleter() { return get()->raw_deleter(); }

c10::DataPtr allocate_for_host(size_t nbytes) {
  const c10::Device label(c10::DeviceType::CPU);
  const DeviceIndex device = current_device();
  MUSAAllocator* allocator = get();
  c10::DataPtr memory;
  if (C10_LIKELY(allocator == &instance())) {
    memory = instance().make(device, nbytes, label);
  } else {
    void* ptr = allocator->raw_alloc(nbytes);
    memory = {ptr, ptr, allocator->raw_deleter(), label};
  }
  if (memory) {
    wait_for_host_access(current_stream_handle(device));
  }
  return memory;
}

void emptyCache(c10::MempoolId_t id) { get()->emptyCache(id); }

void beginAllocateToPool(DeviceIndex device, MempoolId_t id, std::function<bool(musaStream_t)> filter) {
  require_native("A private memory pool");
  checked_cache(device).begin_filling(id, std::move(filter));
}

void endAllocateToPool(DeviceIndex device, MempoolId_t id) { checked_cache(device).end_filling(id); }

void createOrIncrefPool(DeviceIndex device, MempoolId_t id, std::shared_ptr<MUSAAllocator> allocator) {
  require_native("A private memory pool");
  checked_cache(device).hold_pool(id, std::move(allocator));
}

void releasePool(DeviceIndex device, MempoolId_t id) { checked_cache(device).release_pool(id); }

int getPoolUseCount(DeviceIndex device, MempoolId_t id) { return checked_cache(device).pool_use_count(id); }

void setUseOnOOM(DeviceIndex device, MempoolId_t id, bool use_on_oom) {
  checked_cache(device).set_use_on_oom(id, use_on_oom);
}

void setNoSplit(DeviceIndex device, MempoolId_t id) { checked_cache(device).set_no_split(id); }

void markCaptureBegin(DeviceIndex /*device*/) { note_capture_begin(); }

void markCaptureEnd(DeviceIndex /*device*/) {
  if (!note_capture_end()) {
    return;
  }
  const DeviceIndex count = device_count();
  for (DeviceIndex device = 0; device < count; ++device) {
    cache(device).free_deferred();
  }
}

void recordStream(const c10::DataPtr& data, MUSAStream stream) { get()->recordStream(data, stream.unwrap()); }

DeviceStats getDeviceStats(DeviceIndex device) { return get()->getDeviceStats(device); }

void resetPeakStats(DeviceIndex device) { get()->resetPeakStats(device); }

void resetAccumulatedStats(DeviceIndex device) { get()->resetAccumulatedStats(device); }

void setMemoryFraction(double fraction, DeviceIndex device) {
  TORCH_CHECK_VALUE(
      fraction >= 0.0 && fraction <= 1.0, "The fraction of device memory must be in [0, 1], got ", fraction, ".");
  checked_cache(device).set_memory_fraction(fraction);
}

void setMemoryFractionOfAllDevices(double fraction) {
  for (int device = 0; device < C10_COMPILE_TIME_MAX_MUSA_DEVICES; ++device) {
    cache(static_cast<DeviceIndex>(device)).set_memory_fraction(fraction);
  }
}

double getMemoryFraction(DeviceIndex device) { return checked_cache(device).memory_fraction(); }

std::pair<size_t, size_t> cacheInfo(DeviceIndex device) { return checked_cache(device).cache_info(); }

SnapshotInfo snapshot(c10::MempoolId_t id, bool include_traces) {
  SnapshotInfo result;
  const DeviceIndex count = device_count();
  for (DeviceIndex device = 0; device < count; ++device) {
    auto [segments, trace] = cache(device).snapshot(id, include_traces);
    result.segments.insert(
        result.segments.end(), std::make_move_iterator(segments.begin()), std::make_move_iterator(segments.end()));
    result.device_traces.push_back(std::move(trace));
  }
  if (include_traces) {
    result.external_annotations = trace::annotations();
  }
  trace::convert_times(result);
  return result;
}

void recordHistory(
    bool enabled, CreateContextFn context_recorder, size_t alloc_trace_max_entries, RecordContext when,
    bool clearHistory, const std::vector<std::string>& skip_actions, DeviceIndex device) {
  const HistoryOptions options{enabled, context_recorder, alloc_trace_max_entries, when, clearHistory, skip_actions};
  for (const std::string& action : skip_actions) {
    c10::CachingDeviceAllocator::parseTraceEntryAction(action); // raises before any change
  }
  trace::start_clock();
  trace::configure_annotations(options);
  if (device >= 0) {
    checked_cache(device).record_history(options);
    return;
  }
  const DeviceIndex count = device_count();
  for (DeviceIndex index = 0; index < count; ++index) {
    cache(index).record_history(options);
  }
}

bool isHistoryEnabled() {
  const DeviceIndex count = device_count();
  for (DeviceIndex device = 0; device < count; ++device) {
    if (cache(device).recording_history()) {
      return true;
    }
  }
  return false;
}

void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& metadata) {
  trace::annotate(current_device(), metadata);
}

void pushCompileContext(std::string& context) { trace::push_compile_context(context); }

void popCompileContext() { trace::pop_compile_context(); }

void setUserMetadata(const std::string& metadata) { trace::set_user_metadata(metadata); }

std::string getUserMetadata() { return trace::user_metadata(); }

std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* ptr) {
  std::shared_ptr<c10::GatheredContext> context;
  visit_caches([&](DeviceCachingAllocator& device) {
    context = device.context_of(ptr);
    return context != nullptr;
  });
  return context;
}

void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) {
  const DeviceIndex count = device_count();
  for (DeviceIndex device = 0; device < count; ++device) {
    cache(device).attach_trace_tracker(tracker);
  }
}

void attachOutOfMemoryObserver(OutOfMemoryObserver observer) { trace::attach_observer(std::move(observer)); }

void* getBaseAllocation(void* ptr, size_t* size) {
  void* base = nullptr;
  visit_caches([&](DeviceCachingAllocator& device) {
    base = device.base_allocation(ptr, size);
    return base != nullptr;
  });
  TORCH_CHECK(base != nullptr, ptr, " is not the start of a live allocation of the musa caching allocator.");
  return base;
}

bool owns(const void* ptr) { return get()->owns(ptr); }

void allowPeer(DeviceIndex device, DeviceIndex peer) { cache(device).allow_peer(peer); }

double bench(size_t nbytes, int iterations) {
  TORCH_CHECK_VALUE(nbytes > 0 && iterations > 0, "bench needs a size and a number of iterations above 0.");
  raw_delete(raw_alloc(nbytes)); // the first allocation reserves the segment
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < iterations; ++i) {
    raw_delete(raw_alloc(nbytes));
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / iterations;
}

} // namespace c10::musa::MUSACachingAllocator
