// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAAllocator.h>

#include <c10/musa/MUSAEnvironment.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAKernelGuard.h>
#include <c10/musa/MUSAStream.h>

namespace c10::musa::MUSACachingAllocator {

void MUSAAllocator::copy_data(void* dest, const void* src, std::size_t count) const {
  C10_MUSA_CHECK(musaMemcpyAsync(dest, src, count, musaMemcpyDeviceToDevice, getCurrentMUSAStream().stream()));
}

bool MUSAAllocator::initialized() { return device_count() > 0; }

std::pair<size_t, size_t> MUSAAllocator::getMemoryInfo(DeviceIndex device) {
  const MUSAKernelGuard guard(resolve_device_index(device));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  C10_MUSA_CHECK(musaMemGetInfo(&free_bytes, &total_bytes));
  return {free_bytes, total_bytes};
}

// MUSAAllocatorConfig::load_environment refuses invalid values; nothing may be thrown while the library is loaded.
std::atomic<bool> caching_enabled{environment_variable("PYTORCH_NO_MUSA_MEMORY_CACHING") != "1"};

void enable(bool value) { caching_enabled.store(value, std::memory_order_relaxed); }

} // namespace c10::musa::MUSACachingAllocator
