// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "engine/checked_size.h"
#include "engine/device.h"
#include "engine/memory_state.h"
#include "engine/segfault.h"

namespace musa_emulator {
namespace {

// Visible in /proc; identifies an imported descriptor. Followed by the physical ordinal of the device.
constexpr char kName[] = "musa-emulator-physical-";

bool is_multiple(size_t value) { return value % kGranularity == 0; }

void* pages_at(uintptr_t address) { return reinterpret_cast<void*>(address); }

bool make_inaccessible(uintptr_t address, size_t bytes) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return mmap(pages_at(address), bytes, PROT_NONE, flags, -1, 0) != MAP_FAILED;
}

void protect(const Memory& m, uintptr_t address, const Mapping& mapping) {
  const bool open = !strict() || mapping.open > 0 || m.everything_open > 0;
  int protection = PROT_NONE;
  if (open && mapping.readers != 0) {
    protection = mapping.writers != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  }
  mprotect(pages_at(address), mapping.bytes, protection);
}

void destroy(Memory& m, std::map<uint64_t, PhysicalMemory>::iterator memory) {
  const PhysicalMemory& found = memory->second;
  if (found.shareable) {
    close(found.descriptor);
  } else {
    fallocate(
        found.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, found.offset, static_cast<off_t>(found.bytes));
  }
  if (!found.imported) {
    m.spaces[static_cast<size_t>(found.device)].refund(found.bytes);
  }
  m.virtual_memory.physical.erase(memory);
}

// The pages of the address range must already be inaccessible.
void forget_mapping(Memory& m, std::map<uintptr_t, Mapping>::iterator mapping) {
  const auto memory = m.virtual_memory.physical.find(mapping->second.handle);
  m.virtual_memory.mappings.erase(mapping);
  if (--memory->second.mappings == 0 && memory->second.released) {
    destroy(m, memory);
  }
}

// Whether the range consists of whole mappings, without gaps. Access can be set, and mappings removed, only for whole
// mappings.
bool whole_mappings(VirtualMemory& v, uintptr_t address, size_t bytes) {
  if (!v.mappings.contains(address) || !v.mapped(address, bytes)) {
    return false;
  }
  const auto last = v.find(address + bytes - 1);
  return last->first + last->second.bytes == address + bytes;
}

int new_descriptor(int device) {
  char name[64];
  std::snprintf(name, sizeof name, "%s%d", kName, find_device(device)->physical);
  return memfd_create(name, MFD_CLOEXEC);
}

bool poison(const PhysicalMemory& memory) {
  void* pages = mmap(nullptr, memory.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.descriptor, memory.offset);
  if (pages == MAP_FAILED) {
    return false;
  }
  std::memset(pages, 0xCD, memory.bytes);
  munmap(pages, memory.bytes);
  return true;
}

} // namespace

musaError_t reserve_addresses(size_t bytes, size_t alignment, uintptr_t* address) {
  if (bytes == 0 || !is_multiple(bytes) || (alignment != 0 && !std::has_single_bit(alignment))) {
    return musaErrorInvalidValue;
  }
  install_fault_handler(); // such addresses can fault even if ordinary device memory cannot
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const uintptr_t base = m.virtual_addresses().take(bytes, std::max(alignment, kGranularity));
  if (base == 0) {
    return musaErrorMemoryAllocation;
  }
  m.virtual_memory.reservations.emplace(base, bytes);
  *address = base;
  return musaSuccess;
}

musaError_t free_addresses(uintptr_t address, size_t bytes) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  VirtualMemory& v = m.virtual_memory;
  const auto found = v.reservations.find(address);
  if (found == v.reservations.end() || found->second != bytes) {
    return musaErrorInvalidValue;
  }
  const auto mapping = v.mappings.lower_bound(address);
  if (mapping != v.mappings.end() && mapping->first < address + bytes) {
    return musaErrorInvalidValue; // still mapped
  }
  v.reservations.erase(found);
  m.virtual_addresses().give_back(address, bytes);
  return musaSuccess;
}

musaError_t create_physical(int device, size_t bytes, bool shareable, uint64_t* handle) {
  if (bytes == 0 || !is_multiple(bytes)) {
    return musaErrorInvalidValue;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  VirtualMemory& v = m.virtual_memory;
  AddressSpace& space = m.spaces[static_cast<size_t>(device)];
  const size_t limit = engine().config.memory_limit;
  if (bytes > limit || space.used() + bytes > limit) {
    return musaErrorMemoryAllocation;
  }
  PhysicalMemory memory{.bytes = bytes, .device = device, .shareable = shareable};
  VirtualMemory::Pages own;
  VirtualMemory::Pages& pages = shareable ? own : v.pages[device];
  if (pages.descriptor < 0) {
    pages.descriptor = new_descriptor(device);
  }
  if (pages.descriptor < 0) {
    return musaErrorOperatingSystem;
  }
  memory.descriptor = pages.descriptor;
  memory.offset = pages.end;
  if (ftruncate(pages.descriptor, pages.end + static_cast<off_t>(bytes)) != 0 ||
      (engine().config.poison && !poison(memory))) {
    if (shareable) {
      close(pages.descriptor);
    }
    return musaErrorMemoryAllocation;
  }
  pages.end += static_cast<off_t>(bytes);
  space.charge(bytes);
  *handle = v.next_handle++;
  v.physical.emplace(*handle, memory);
  return musaSuccess;
}

musaError_t release_physical(uint64_t handle) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const auto found = m.virtual_memory.physical.find(handle);
  if (found == m.virtual_memory.physical.end() || found->second.released) {
    return musaErrorInvalidValue;
  }
  found->second.released = true;
  if (found->second.mappings == 0) {
    destroy(m, found);
  }
  return musaSuccess;
}

musaError_t map_physical(uintptr_t address, size_t bytes, size_t offset, uint64_t handle) {
  // Like the driver, does not map from the middle of an allocation.
  if (bytes == 0 || !is_multiple(bytes) || !is_multiple(address) || offset != 0) {
    return musaErrorInvalidValue;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  VirtualMemory& v = m.virtual_memory;
  const auto found = v.physical.find(handle);
  if (found == v.physical.end() || found->second.released || bytes > found->second.bytes) {
    return musaErrorInvalidValue;
  }
  auto reservation = v.reservations.upper_bound(address);
  if (reservation == v.reservations.begin()) {
    return musaErrorInvalidValue;
  }
  --reservation;
  const size_t skipped = address - reservation->first;
  if (skipped >= reservation->second || bytes > reservation->second - skipped) {
    return musaErrorInvalidValue;
  }
  const auto next = v.mappings.lower_bound(address);
  if (v.find(address) != v.mappings.end() || (next != v.mappings.end() && next->first < address + bytes)) {
    return musaErrorInvalidValue; // already mapped
  }
  if (mmap(
          pages_at(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.descriptor,
          found->second.offset) == MAP_FAILED) {
    return musaErrorMemoryAllocation;
  }
  madvise(pages_at(address), bytes, MADV_HUGEPAGE); // as for ordinary memory, if the kernel supports it
  v.mappings.emplace(address, Mapping{.bytes = bytes, .handle = handle});
  ++found->second.mappings;
  m.generation.fetch_add(1);
  return musaSuccess;
}

musaError_t unmap_addresses(uintptr_t address, size_t bytes) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  VirtualMemory& v = m.virtual_memory;
  if (bytes == 0 || !whole_mappings(v, address, bytes)) {
    return musaErrorInvalidValue;
  }
  if (!make_inaccessible(address, bytes)) {
    return musaErrorUnknown;
  }
  auto mapping = v.mappings.find(address);
  while (mapping != v.mappings.end() && mapping->first < address + bytes) {
    forget_mapping(m, mapping++);
  }
  m.generation.fetch_add(1);
  return musaSuccess;
}

musaError_t grant_access(uintptr_t address, size_t bytes, const std::vector<AccessGrant>& grants) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  VirtualMemory& v = m.virtual_memory;
  if (bytes == 0 || grants.empty() || !whole_mappings(v, address, bytes)) {
    return musaErrorInvalidValue;
  }
  for (auto mapping = v.mappings.find(address); mapping != v.mappings.end() && mapping->first < address + bytes;
       ++mapping) {
    for (const AccessGrant& grant : grants) {
      const uint64_t bit = uint64_t{1} << grant.device;
      mapping->second.readers = grant.read ? mapping->second.readers | bit : mapping->second.readers & ~bit;
      mapping->second.writers = grant.write ? mapping->second.writers | bit : mapping->second.writers & ~bit;
    }
    protect(m, mapping->first, mapping->second);
  }
  m.generation.fetch_add(1);
  return musaSuccess;
}

musaError_t export_physical(uint64_t handle, int* descriptor) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const auto found = m.virtual_memory.physical.find(handle);
  if (found == m.virtual_memory.physical.end() || found->second.released || !found->second.shareable) {
    return musaErrorInvalidValue;
  }
  *descriptor = fcntl(found->second.descriptor, F_DUPFD_CLOEXEC, 0);
  return *descriptor >= 0 ? musaSuccess : musaErrorOperatingSystem;
}

musaError_t import_physical(int descriptor, uint64_t* handle) {
  char path[64];
  char target[128] = "";
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(path, target, sizeof target - 1);
  int physical = -1;
  char pattern[64];
  std::snprintf(pattern, sizeof pattern, "/memfd:%s%%d", kName);
  struct stat status;
  if (length <= 0 || std::sscanf(target, pattern, &physical) != 1 || fstat(descriptor, &status) != 0) {
    return musaErrorInvalidValue;
  }
  int device = 0;
  while (device < device_count() && find_device(device)->physical != physical) {
    ++device;
  }
  if (device == device_count()) {
    return musaErrorInvalidDevice; // not visible to this process
  }
  // Duplicated, because the caller closes its descriptor.
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    return musaErrorOperatingSystem;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  *handle = m.virtual_memory.next_handle++;
  m.virtual_memory.physical.emplace(
      *handle,
      PhysicalMemory{
          .bytes = static_cast<size_t>(status.st_size),
          .device = device,
          .descriptor = own,
          .shareable = true,
          .imported = true});
  return musaSuccess;
}

bool may_touch(const void* pointer, size_t bytes, bool write) {
  Memory& m = memory();
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (!m.is_virtual(address)) {
    return true;
  }
  MemoryLock lock(m.mutex);
  return m.virtual_memory.accessible(address, bytes, write);
}

void release_virtual_memory(Memory& m, int device) {
  VirtualMemory& v = m.virtual_memory;
  for (auto mapping = v.mappings.begin(); mapping != v.mappings.end();) {
    const auto next = std::next(mapping);
    if (v.device_of(mapping->second) == device) {
      make_inaccessible(mapping->first, mapping->second.bytes);
      forget_mapping(m, mapping);
    }
    mapping = next;
  }
  for (auto memory = v.physical.begin(); memory != v.physical.end();) {
    const auto next = std::next(memory);
    if (memory->second.device == device) {
      destroy(m, memory);
    }
    memory = next;
  }
}

void release_virtual_memory(Memory& m) {
  VirtualMemory& v = m.virtual_memory;
  for (const auto& [handle, memory] : v.physical) {
    if (memory.shareable) {
      close(memory.descriptor);
    }
  }
  for (const auto& [device, pages] : v.pages) {
    if (pages.descriptor >= 0) {
      close(pages.descriptor);
    }
  }
  // Handles are not reused, so that old ones stay invalid.
  const uint64_t next_handle = v.next_handle;
  v = {};
  v.next_handle = next_handle;
}

size_t live_physical(Memory& m, int device) {
  size_t live = 0;
  for (const auto& [handle, memory] : m.virtual_memory.physical) {
    live += memory.device == device ? 1 : 0;
  }
  return live;
}

void open_mappings(Memory& m, uintptr_t address, size_t bytes) {
  VirtualMemory& v = m.virtual_memory;
  for (auto mapping = v.find(address); mapping != v.mappings.end() && mapping->first < address + bytes; ++mapping) {
    if (mapping->second.open++ == 0) {
      protect(m, mapping->first, mapping->second);
    }
  }
}

void close_mappings(Memory& m, uintptr_t address, size_t bytes) {
  VirtualMemory& v = m.virtual_memory;
  for (auto mapping = v.find(address); mapping != v.mappings.end() && mapping->first < address + bytes; ++mapping) {
    // 0 if the range was mapped again meanwhile, by a caller that did not wait for its own work.
    if (mapping->second.open > 0 && --mapping->second.open == 0) {
      protect(m, mapping->first, mapping->second);
    }
  }
}

void refresh_mappings(Memory& m) {
  for (const auto& [address, mapping] : m.virtual_memory.mappings) {
    protect(m, address, mapping);
  }
}

void describe_virtual(Memory& m, uintptr_t address, char* text, size_t capacity) {
  VirtualMemory& v = m.virtual_memory;
  if (const auto mapping = v.find(address); mapping != v.mappings.end()) {
    const char* why = mapping->second.readers == 0 ? "without access: muMemSetAccess was not called"
        : mapping->second.writers == 0             ? "read-only"
                                                   : "and accessible to devices";
    std::snprintf(
        text, capacity, "device %d, byte %zu of the mapping of %zu bytes at %p, mapped %s",
        v.device_of(mapping->second), static_cast<size_t>(address - mapping->first), mapping->second.bytes,
        pages_at(mapping->first), why);
    return;
  }
  auto reservation = v.reservations.upper_bound(address);
  if (reservation != v.reservations.begin() && address - (--reservation)->first < reservation->second) {
    std::snprintf(
        text, capacity, "byte %zu of the addresses reserved at %p, where nothing is mapped (muMemMap, muMemUnmap)",
        static_cast<size_t>(address - reservation->first), pages_at(reservation->first));
    return;
  }
  std::snprintf(text, capacity, "address range of virtual memory management, not reserved or freed");
}

} // namespace musa_emulator
