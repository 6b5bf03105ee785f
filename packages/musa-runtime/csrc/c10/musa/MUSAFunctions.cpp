// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAFunctions.h>

#include <c10/musa/MUSADeferredError.h>
#include <c10/musa/MUSADeviceChoice.h>
#include <c10/musa/MUSAEnvironment.h>

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

namespace c10::musa {
namespace {

// The number of devices once it is known, 0 before: for index checks, which every operator makes several times.
std::atomic<DeviceIndex> known_count{0};
std::atomic<bool> forked_after_count{false};

std::string visible_devices_text() {
  const char* value = std::getenv("MUSA_VISIBLE_DEVICES");
  return value == nullptr ? "MUSA_VISIBLE_DEVICES is not set"
                          : c10::str("MUSA_VISIBLE_DEVICES='", printable(value), "'");
}

struct DeviceCount {
  DeviceIndex count = 0;
  musaError_t error = musaSuccess;
  const std::string visible_devices = visible_devices_text(); // as the SDK read it

  DeviceCount() noexcept {
    int n = 0;
    error = musaGetDeviceCount(&n);
    if (error != musaSuccess) {
      (void)musaGetLastError();
      return;
    }
    count = static_cast<DeviceIndex>(n < C10_COMPILE_TIME_MAX_MUSA_DEVICES ? n : C10_COMPILE_TIME_MAX_MUSA_DEVICES);
    known_count.store(count, std::memory_order_relaxed);
    (void)pthread_atfork(nullptr, nullptr, [] { forked_after_count.store(known_count.load() > 0); });
  }
};

const DeviceCount& counted() noexcept {
  static const DeviceCount instance;
  return instance;
}

// The device that this thread last set through this library.
thread_local DeviceIndex last_set_device = 0;
thread_local bool device_was_set = false;

} // namespace

DeviceIndex device_count() noexcept { return counted().count; }

void warn_if_visible_devices_changed() {
  const std::string now = visible_devices_text();
  if (now != counted().visible_devices) {
    TORCH_WARN(
        now, ", but when the devices were counted ", counted().visible_devices,
        ". The SDK reads the variable once, so the "
        "change has no effect.\nFix: set it before the first call of torch.musa.device_count() or is_available(), or before "
        "the process starts.");
  }
}

bool counted_before_fork() noexcept { return forked_after_count.load(std::memory_order_relaxed); }

musaError_t device_count_error() noexcept { return counted().error; }

DeviceIndex device_count_ensure_non_zero() {
  const DeviceCount& answer = counted();
  TORCH_CHECK(
      answer.count > 0, "No musa device can be used: musaGetDeviceCount returned ",
      answer.error == musaSuccess ? "0 devices" : musaGetErrorName(answer.error), " (", visible_devices_text(), ").\n",
      "Likely causes: MUSA_VISIBLE_DEVICES hides every device or cannot be parsed (a comma-separated list of indices is "
      "expected), or the driver is not running.\nFix: python -m torch_musa doctor");
  return answer.count;
}

void check_device_index(DeviceIndex device) {
  if (C10_LIKELY(device >= 0 && device < known_count.load(std::memory_order_relaxed))) {
    return;
  }
  const DeviceIndex count = device_count_ensure_non_zero();
  TORCH_CHECK(
      device >= 0 && device < count, "Invalid device musa:", static_cast<int>(device), ": this process sees ",
      static_cast<int>(count), " musa device(s), numbered from 0 (", visible_devices_text(), ").\n",
      "Fix: use an index below torch.musa.device_count(), or make more devices visible.");
}

DeviceIndex current_device() {
  int device = -1;
  C10_MUSA_CHECK(musaGetDevice(&device));
  return static_cast<DeviceIndex>(device);
}

void set_device(DeviceIndex device) {
  check_device_index(device);
  C10_MUSA_CHECK(SetDevice(device));
  device_was_set = true;
}

bool device_is_chosen() noexcept { return device_was_set; }

void device_synchronize() {
  C10_MUSA_CHECK(musaDeviceSynchronize());
  check_deferred_error();
}

musaError_t GetDevice(DeviceIndex* device) {
  int index = -1;
  const musaError_t error = musaGetDevice(&index);
  if (error == musaSuccess) {
    *device = static_cast<DeviceIndex>(index);
  }
  return error;
}

musaError_t SetDevice(DeviceIndex device) {
  const musaError_t error = musaSetDevice(device);
  if (error == musaSuccess) {
    last_set_device = device;
  }
  return error;
}

void restore_device(DeviceIndex device) noexcept {
  // Twice: a transient failure must not leave the thread on another device, where later operations would run unnoticed.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (SetDevice(device) == musaSuccess) {
      return;
    }
    C10_MUSA_CLEAR_ERROR();
  }
}

DeviceIndex ExchangeDevice(DeviceIndex device) {
  // Every operator exchanges devices; the only device is always the current one.
  if (device == 0 && known_count.load(std::memory_order_relaxed) == 1) {
    return 0;
  }
  int current = -1;
  const bool known = musaGetDevice(&current) == musaSuccess;
  if (C10_UNLIKELY(!known)) {
    // Guards run where exceptions cannot be caught (a throw on a thread of the autograd engine would end the process). If
    // the SDK has really failed, the operation inside the guard fails too.
    C10_MUSA_CLEAR_ERROR();
    current = last_set_device;
  }
  const auto before = static_cast<DeviceIndex>(current);
  if (!known || device != before) {
    check_device_index(device);
    C10_MUSA_CHECK(SetDevice(device));
  }
  return before;
}

DeviceIndex MaybeExchangeDevice(DeviceIndex device) { return device < 0 ? current_device() : ExchangeDevice(device); }

const musaDeviceProp& device_properties(DeviceIndex device) {
  struct Entry {
    std::once_flag once;
    std::atomic<bool> known{false}; // read first: operators read it often, and std::call_once costs more than a load
    musaDeviceProp properties{};
  };
  static std::array<Entry, C10_COMPILE_TIME_MAX_MUSA_DEVICES> entries;
  const DeviceIndex index = resolve_device_index(device);
  check_device_index(index);
  Entry& entry = entries[index];
  if (C10_UNLIKELY(!entry.known.load(std::memory_order_acquire))) {
    // An exception leaves the flag unset, so a transient failure of the SDK is not cached.
    std::call_once(entry.once, [&] { C10_MUSA_CHECK(musaGetDeviceProperties(&entry.properties, index)); });
    entry.known.store(true, std::memory_order_release);
  }
  return entry.properties;
}

} // namespace c10::musa
