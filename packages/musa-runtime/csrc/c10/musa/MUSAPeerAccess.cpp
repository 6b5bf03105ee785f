// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAPeerAccess.h>

#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAGuard.h>

#include <array>
#include <atomic>
#include <mutex>

namespace c10::musa {
namespace {

enum class Access : uint8_t { Unknown, Enabled, None };

// By device and peer.
std::array<std::array<std::atomic<Access>, C10_COMPILE_TIME_MAX_MUSA_DEVICES>, C10_COMPILE_TIME_MAX_MUSA_DEVICES>
    table{};
std::mutex enabling; // taken before the allocator's

Access enable(DeviceIndex device, DeviceIndex peer) {
  const MUSAGuard guard(device);
  const MUSAStreamCaptureModeGuard relaxed;
  int possible = 0;
  C10_MUSA_CHECK(musaDeviceCanAccessPeer(&possible, device, peer));
  if (possible == 0) {
    return Access::None;
  }
  switch (const musaError_t error = musaDeviceEnablePeerAccess(peer, 0)) {
    case musaSuccess: break;
    case musaErrorPeerAccessAlreadyEnabled: // by another library in this process, or by a call of this that failed below
      C10_MUSA_CLEAR_ERROR();
      break;
    case musaErrorTooManyPeers: // a limit of the hardware
      C10_MUSA_CLEAR_ERROR();
      return Access::None;
    default: throw_musa_error(error, "musaDeviceEnablePeerAccess(peer, 0)", __func__, __FILE__, __LINE__);
  }
  MUSACachingAllocator::allowPeer(peer, device);
  return Access::Enabled;
}

} // namespace

bool get_p2p_access(DeviceIndex device, DeviceIndex peer) {
  check_device_index(device);
  check_device_index(peer);
  if (device == peer) {
    return true;
  }
  std::atomic<Access>& access = table[device][peer];
  Access found = access.load(std::memory_order_acquire);
  if (C10_UNLIKELY(found == Access::Unknown)) {
    const std::lock_guard<std::mutex> lock(enabling);
    found = access.load(std::memory_order_relaxed);
    if (found == Access::Unknown) {
      found = enable(device, peer);
      access.store(found, std::memory_order_release);
    }
  }
  return found == Access::Enabled;
}

} // namespace c10::musa
