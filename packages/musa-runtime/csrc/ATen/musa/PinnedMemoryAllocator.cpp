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

using c10::musa::BetweenCaptures;
using c10::musa::MUSAStream;
using c10::musa::MUSAStreamCaptureModeGuard;

// The use of a freed block by a stream, which ends when an event on the stream has finished. A block that is freed during a
// capture gets its event at the first query after the capture; a later event only delays the reuse of the block.
class StreamUse {
 public:
  explicit StreamUse(MUSAStream stream) : stream_(stream) {}

  // Does not throw: without an event, the host waits for the stream.
  void record(const BetweenCaptures& /*proof*/) {
    const MUSAStreamCaptureModeGuard relaxed;
    try {
      event_.record(stream_);
    } catch (const c10::Error& error) {
      C10_MUSA_IGNORE_ERROR(musaStreamSynchronize(stream_.stream()));
      event_ = MUSAEvent(); // never recorded, so it counts as finished
      TORCH_WARN("Waited for ", stream_.unwrap(), " to free page-locked memory: ", error.what());
    }
    recorded_ = true;
  }

  bool finished(const BetweenCaptures& between) {
    if (!recorded_) {
      record(between);
    }
    const MUSAStreamCaptureModeGuard relaxed;
    return event_.query();
  }

 private:
  MUSAStream stream_;
  MUSAEvent event_;
  bool recorded_ = false;
};

struct PinnedMemoryAllocatorImpl final : at::CachingHostAllocatorImpl<MUSAStream, StreamUse> {
  void copy_data(void* dest, const void* src, std::size_t count) const override { std::memcpy(dest, src, count); }

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
    if (C10_UNLIKELY(error != musaSuccess)) {
      c10::musa::throw_musa_error(
          error, "musaHostAlloc(ptr, size, musaHostAllocPortable)", __func__, __FILE__, __LINE__);
    }
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
    if (C10_UNLIKELY(error != musaSuccess)) {
      c10::musa::warn_musa_error(error, "musaFreeHost(block->ptr_)");
    }
    note_time(stats_.host_free_time, watch);
  }

  // Called from the deleter of a tensor: must not throw. Each use must yield one element, otherwise the block would never be
  // reused.
  void record_stream(std::optional<std::vector<StreamUse>>& uses, MUSAStream stream) override {
    StreamUse use(stream);
    if (const auto between = BetweenCaptures::enter()) {
      use.record(*between);
    }
    uses->push_back(std::move(use));
  }

  // Called on any thread: a DataLoader's thread pins memory while the program captures.
  bool query_event(StreamUse& use) override {
    const auto between = BetweenCaptures::enter();
    return between && use.finished(*between);
  }

  MUSAStream get_current_stream() const override { return c10::musa::getCurrentMUSAStream(); }

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

void delete_pinned(void* context) { instance().free(context); }

[[maybe_unused]] const bool pinned_allocator_registered = [] {
  at::setHostAllocator(at::kPrivateUse1, &instance());
  return true;
}();

} // namespace

at::HostAllocator* getPinnedMemoryAllocator() { return &instance(); }

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
  if (C10_UNLIKELY(error != musaSuccess)) {
    c10::musa::throw_musa_error(error, "musaPointerGetAttributes(&attributes, data)", __func__, __FILE__, __LINE__);
  }
  return attributes.type == musaMemoryTypeHost;
}

} // namespace at::musa
