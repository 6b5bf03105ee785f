// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/mappings.h"

#include "engine/checked_size.h"

namespace musa_emulator {

std::map<uintptr_t, Mapping>::iterator VirtualMemory::find(uintptr_t address) {
  auto next = mappings.upper_bound(address);
  if (next == mappings.begin()) {
    return mappings.end();
  }
  --next;
  return address - next->first < next->second.bytes ? next : mappings.end();
}

bool VirtualMemory::mapped(uintptr_t address, size_t bytes) {
  const uintptr_t end = checked_sum(address, bytes);
  for (auto mapping = find(address); mapping != mappings.end() && mapping->first <= address; ++mapping) {
    address = mapping->first + mapping->second.bytes;
    if (address >= end) {
      return true;
    }
  }
  return false;
}

bool VirtualMemory::accessible(uintptr_t address, size_t bytes, bool write) {
  if (!mapped(address, bytes)) {
    return false;
  }
  for (auto mapping = find(address); mapping != mappings.end() && mapping->first < address + bytes; ++mapping) {
    if ((write ? mapping->second.writers : mapping->second.readers) == 0) {
      return false;
    }
  }
  return true;
}

} // namespace musa_emulator
