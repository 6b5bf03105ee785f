// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <transfer/memcpy.h>

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/musa/MUSAEvent.h>
#include <ATen/musa/PinnedMemoryAllocator.h>
#include <c10/musa/MUSADeferredError.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAPeerAccess.h>

#include <cstring>
#include <mutex>
#include <vector>

namespace at::musa {

using c10::musa::MUSAGuard;
using c10::musa::MUSAStream;

namespace {

constexpr size_t kNumberBytes = 16;
// CUDA's driver accepts this much pageable memory without waiting for the stream.
constexpr size_t kStagedBytes = 64 * 1024;

// Pinned memory for one number, one instance per thread. When the thread ends, other threads reuse it: it is never freed,
// because threads may end after the SDK's libraries are unloaded.
class PinnedNumber {
 public:
  PinnedNumber() = default;
  ~PinnedNumber() {
    if (address_ != nullptr) {
      const std::lock_guard lock(mutex());
      spare().push_back(address_);
    }
  }
  PinnedNumber(const PinnedNumber&) = delete;
  PinnedNumber& operator=(const PinnedNumber&) = delete;

  // Returns the calling thread's memory, or null if none can be allocated. A device must be current.
  static void* of_this_thread() {
    static thread_local PinnedNumber number;
    if (number.address_ == nullptr) {
      const std::lock_guard lock(mutex());
      if (!spare().empty()) {
        number.address_ = spare().back();
        spare().pop_back();
      } else if (musaHostAlloc(&number.address_, kNumberBytes, musaHostAllocPortable) != musaSuccess) {
        (void)musaGetLastError();
        number.address_ = nullptr;
      }
    }
    return number.address_;
  }

 private:
  static std::mutex& mutex() {
    static auto& mutex = *new std::mutex();
    return mutex;
  }
  static std::vector<void*>& spare() {
    static auto& spare = *new std::vector<void*>();
    return spare;
  }

  void* address_ = nullptr;
};

} // namespace

void read_number(void* value, const void* src, size_t nbytes, Device device) {
  const c10::musa::MUSAKernelGuard guard(device.index());
  void* const pinned = nbytes <= kNumberBytes ? PinnedNumber::of_this_thread() : nullptr;
  if (pinned == nullptr) {
    memcpy_on_stream(value, src, nbytes, musaMemcpyDeviceToHost, device, Then::Wait);
    return;
  }
  const musaStream_t stream = c10::musa::getCurrentMUSAStream(device.index()).stream();
  C10_MUSA_CHECK(musaMemcpyAsync(pinned, src, nbytes, musaMemcpyDeviceToHost, stream));
  C10_MUSA_CHECK(musaStreamSynchronize(stream));
  c10::musa::check_deferred_error();
  std::memcpy(value, pinned, nbytes);
}

void memcpy_on_stream(void* dst, const void* src, size_t nbytes, musaMemcpyKind kind, Device device, Then then) {
  const c10::musa::MUSAKernelGuard guard(device.index());
  const musaStream_t stream = c10::musa::getCurrentMUSAStream(device.index()).stream();
  if (then == Then::Wait && (kind == musaMemcpyDeviceToHost || nbytes > kStagedBytes)) {
    // For a copy of pageable memory, CUDA's driver may wait for the stream while it holds a lock that calls of other
    // threads need. The watchdog of a process group could then not end the collective that the stream waits for.
    C10_MUSA_CHECK(musaStreamSynchronize(stream));
  }
  C10_MUSA_CHECK(musaMemcpyAsync(dst, src, nbytes, kind, stream));
  if (then == Then::Wait) {
    C10_MUSA_CHECK(musaStreamSynchronize(stream));
    c10::musa::check_deferred_error();
  }
}

bool is_memcpy(const Tensor& dst, const Tensor& src) {
  return dst.scalar_type() == src.scalar_type() && dst.is_conj() == src.is_conj() && dst.is_neg() == src.is_neg() &&
      dst.is_non_overlapping_and_dense() && src.is_non_overlapping_and_dense() && dst.sizes() == src.sizes() &&
      dst.strides() == src.strides();
}

void memcpy_tensor(const Tensor& dst, const Tensor& src, bool non_blocking) {
  const Device device = is_musa(dst) ? dst.device() : src.device();
  const musaMemcpyKind kind = !is_musa(src) ? musaMemcpyHostToDevice
      : !is_musa(dst)                       ? musaMemcpyDeviceToHost
                                            : musaMemcpyDeviceToDevice;
  const bool wait = !non_blocking && kind != musaMemcpyDeviceToDevice;
  memcpy_on_stream(
      dst.mutable_data_ptr(), src.const_data_ptr(), dst.numel() * dst.itemsize(), kind, device,
      wait ? Then::Wait : Then::Return);
  if (wait || kind == musaMemcpyDeviceToDevice) {
    return;
  }
  const Tensor& host = is_musa(dst) ? src : dst;
  if (isPinnedPtr(host.const_data_ptr())) {
    // Keeps the pinned block from being reused during the copy. Pageable memory does not need this: the SDK has read or
    // written it when the call returns.
    const MUSAStream stream = c10::musa::getCurrentMUSAStream(device.index());
    const bool recorded =
        at::getHostAllocator(at::kPrivateUse1)
            ->record_event(
                const_cast<void*>(host.const_data_ptr()), host.storage().data_ptr().get_context(), stream.unwrap());
    // With an NVIDIA GPU, torch pins memory with torch.cuda's allocator. It does not track this stream, so the host waits
    // for the copy, also beside a capture of another stream. A captured copy runs later.
    if (!recorded && at::globalContext().hasCUDA() && !c10::musa::capturing()) {
      const c10::musa::MUSAStreamCaptureModeGuard relaxed;
      stream.synchronize();
    }
  }
}

void memcpy_between_devices(const Tensor& dst, const Tensor& src) {
  const DeviceIndex from = src.device().index();
  const DeviceIndex to = dst.device().index();
  const MUSAStream source_stream = c10::musa::getCurrentMUSAStream(from);
  const MUSAStream target_stream = c10::musa::getCurrentMUSAStream(to);
  const auto order = [](const MUSAStream& before, const MUSAStream& after) {
    MUSAEvent event;
    event.record(before);
    event.block(after);
  };
  (void)c10::musa::get_p2p_access(from, to); // without access the SDK copies through memory of the host
  // The source's stream does the copy: after the pending work on the target's memory, and before any later work on it.
  order(target_stream, source_stream);
  {
    MUSAGuard guard(from);
    C10_MUSA_CHECK(musaMemcpyPeerAsync(
        dst.mutable_data_ptr(), to, src.const_data_ptr(), from, dst.numel() * dst.itemsize(), source_stream.stream()));
  }
  try {
    order(source_stream, target_stream);
  } catch (...) {
    // The copy is not ordered with the target's stream. When the caller handles this exception, it may free the target's
    // memory while the copy still writes to it, so the host waits for the copy.
    MUSAGuard guard(from);
    C10_MUSA_IGNORE_ERROR(musaStreamSynchronize(source_stream.stream()));
    throw;
  }
}

} // namespace at::musa
