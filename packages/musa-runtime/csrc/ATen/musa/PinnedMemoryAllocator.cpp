// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/musa/PinnedMemoryAllocator.h>

#include <ATen/musa/MUSAEvent.h>
#include <c10/core/DeviceType.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSAGraphsC10Utils.h>

#include <chrono>
#include <cstring>

namespace at::musa {
namespace {

using c10::musa::MUSAStream;
using c10::musa::MUSAStreamCaptureModeGuard;

struct PinnedMemoryAllocatorImpl final : at::CachingHostAllocatorImpl<MUSAStream, MUSAEvent> {
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    std::memcpy(dest, src, count);
  }

 private:
  // Microseconds since its construction.
  class Stopwatch {
   public:
    int64_t elapsed() const {
      return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start_).count();
    }

   private:
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

  void note_time(c10::CachingAllocator::DurationStat& stat, const Stopwatch& watch) {
    const std::lock_guard<std::mutex> guard(stats_.timing_mutex_);
    stat.increase(watch.elapsed());
  }

  void allocate_host_memory(size_t size, void** ptr) override {
    const Stopwatch watch;
    const MUSAStreamCaptureModeGuard relaxed;
    // Portable: page-locked for every device.
    musaError_t error = musaHostAlloc(ptr, size, musaHostAllocPortable);
    if (error == musaErrorMemoryAllocation) {
      C10_MUSA_CLEAR_ERROR();
      empty_cache();
      error = musaHostAlloc(ptr, size, musaHostAllocPortable);
      if (error == musaErrorMemoryAllocation) {
        C10_MUSA_CLEAR_ERROR();
        TORCH_CHECK_WITH(
            OutOfMemoryError, false, "Out of page-locked host memory: ", size, " bytes were requested.\n",
            "Likely causes: the host has no memory left, or the limit on locked memory is too low.\n",
            "Fix: pin fewer tensors (DataLoader: lower prefetch_factor or pin_memory=False), or raise 'ulimit -l'.");
      }
    }
    C10_MUSA_CHECK(error);
    note_time(stats_.host_alloc_time, watch);
  }

  // Called with torch's locks held and its state incomplete: must not throw.
  void free_block(at::HostBlock<MUSAStream>* block) override {
    const Stopwatch watch;
    const MUSAStreamCaptureModeGuard relaxed;
    const musaError_t error = musaFreeHost(block->ptr_);
    if (error == musaErrorMusartUnloading) {
      C10_MUSA_CLEAR_ERROR(); // process exit: the SDK has freed it
      return;
    }
    C10_MUSA_CHECK_WARN(error);
    note_time(stats_.host_free_time, watch);
  }

  // Called from the deleter of a tensor: must not throw. Each use must yield one event, otherwise the block would never be
  // reused.
  void record_stream(std::optional<std::vector<MUSAEvent>>& events, MUSAStream stream) override {
    MUSAEvent event;
    try {
      event.record(stream);
    } catch (const c10::Error& error) {
      const MUSAStreamCaptureModeGuard relaxed;
      C10_MUSA_IGNORE_ERROR(musaStreamSynchronize(stream.stream()));
      event = MUSAEvent(); // never recorded, so it counts as finished
      TORCH_WARN("Waited for ", stream.unwrap(), " to free page-locked memory: ", error.what());
    }
    events->push_back(std::move(event));
  }

  // Called on any thread: a DataLoader's thread pins memory while the program captures.
  bool query_event(MUSAEvent& event) override {
    const c10::musa::BetweenCaptures between;
    const MUSAStreamCaptureModeGuard relaxed;
    return between && event.query();
  }

  MUSAStream get_current_stream() const override {
    return c10::musa::getCurrentMUSAStream();
  }

  bool stream_is_capturing(MUSAStream stream) const override {
    musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
    C10_MUSA_CHECK(musaStreamIsCapturing(stream.stream(), &status));
    return status != musaStreamCaptureStatusNone;
  }
};

void delete_pinned(void* context);

struct PinnedMemoryAllocator final : at::CachingHostAllocatorInterface<PinnedMemoryAllocatorImpl, &delete_pinned> {};

PinnedMemoryAllocator& instance() {
  // Leaked: pinned tensors are freed until the end of the process, after static destructors.
  static auto& allocator = *new PinnedMemoryAllocator();
  return allocator;
}

void delete_pinned(void* context) {
  instance().free(context);
}

[[maybe_unused]] const bool registered = [] {
  at::setHostAllocator(at::kPrivateUse1, &instance());
  return true;
}();

} // namespace

at::HostAllocator* getPinnedMemoryAllocator() {
  return &instance();
}

bool isPinnedPtr(const void* data) {
  if (data == nullptr || c10::musa::device_count() == 0) {
    return false;
  }
  musaPointerAttributes attributes{};
  const musaError_t error = musaPointerGetAttributes(&attributes, data);
  if (error == musaErrorInvalidValue) {
    // Some SDK versions return an error for unregistered memory; others succeed with the type Unregistered.
    C10_MUSA_CLEAR_ERROR();
    return false;
  }
  C10_MUSA_CHECK(error);
  return attributes.type == musaMemoryTypeHost;
}

} // namespace at::musa
