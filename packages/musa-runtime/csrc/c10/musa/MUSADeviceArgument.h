// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAFunctions.h>

#include <string>

namespace c10::musa {

[[noreturn]] inline void fail_device_argument(const std::string& value) {
  TORCH_CHECK(
      false, "Invalid device musa:", value, ": this process sees ", static_cast<int>(device_count()),
      " musa device(s), numbered from 0.\nFix: use an index below torch.musa.device_count().");
}

// Converts a device index from outside. Raises if it does not fit, since a narrowed index names another device. An index that
// fits is checked where it is used.
inline DeviceIndex to_device_index(int64_t value) {
  const auto index = static_cast<DeviceIndex>(value);
  if (C10_UNLIKELY(index != value)) {
    fail_device_argument(std::to_string(value));
  }
  return index;
}

} // namespace c10::musa
