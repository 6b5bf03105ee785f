// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <span>

#include "engine/checked_size.h"
#include "engine/device.h"
#include "engine/memory_state.h"
#include "engine/sanitizer.h"
#include "engine/segfault.h"
#include "engine/virtual_memory.h"

namespace musa_emulator {
namespace {

void set_access(uintptr_t base, const Allocation& allocation, bool accessible) {
  mprotect(reinterpret_cast<void*>(base), allocation.span, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void close_unless_open(Memory& m, uintptr_t base, const Allocation& allocation) {
  if (strict() && allocation.open == 0 && m.everything_open == 0) {
    set_access(base, allocation, false);
  }
}

uintptr_t find_registration(Memory& m, uintptr_t address, Registration* found) {
  auto next = m.registrations.upper_bound(address);
  if (next == m.registrations.begin()) {
    return 0;
  }
  --next;
  if (address - next->first >= next->second.bytes) {
    return 0;
  }
  *found = next->second;
  return next->first;
}

musaError_t check_end(const void* pointer, size_t bytes, const PointerInfo& info, Memory& m) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (bytes > kAddressLimit || address > kAddressLimit - bytes) {
    return musaErrorInvalidValue;
  }
  if (!m.reserved(address)) {
    return musaSuccess; // the size of the caller's own memory is unknown
  }
  if (m.is_virtual(address)) {
    // Adjacent mappings count as one range. Whether a device may access them is checked when the work runs.
    MemoryLock lock(m.mutex);
    return m.virtual_memory.mapped(address, bytes) ? musaSuccess : musaErrorInvalidValue;
  }
  // Freed, never allocated, or past the end of the allocation.
  if (info.type == musaMemoryTypeUnregistered || bytes > info.bytes || address - info.base > info.bytes - bytes) {
    return musaErrorInvalidValue;
  }
  return musaSuccess;
}

} // namespace

Memory& memory() {
  static Memory* instance = new Memory;
  return *instance;
}

void reserve_memory(Engine& state) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  m.devices = static_cast<int>(state.devices.size());
  const size_t slots = state.devices.size() + 2;
  // Much larger than the memory, so that address fragmentation has no effect; smaller if the process may not map that
  // much. Programs that use virtual memory management repeatedly reserve more addresses than there is memory; as a
  // last resort, they get none. The thread sanitizer needs a minute per TiB.
  const size_t limit = state.config.memory_limit;
  const size_t generous = std::bit_ceil(under_tsan() ? limit * 2 : std::max(limit * 4, size_t{64} << 30));
  constexpr size_t kVirtualSlots[] = {32, 4, 1, 0};
  size_t slot = 0;
  size_t virtual_slots = 0;
  void* region = MAP_FAILED;
  for (const size_t candidate : std::span(kVirtualSlots).subspan(under_tsan() ? 1 : 0)) {
    virtual_slots = candidate;
    for (slot = generous; slot >= state.config.memory_limit && slot > 0; slot /= 2) {
      m.size = (slots + virtual_slots) * slot;
      region = mmap(nullptr, m.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (region != MAP_FAILED) {
        break;
      }
    }
    if (region != MAP_FAILED) {
      break;
    }
  }
  if (region == MAP_FAILED) {
    m.size = 0;
    state.devices.clear();
    state.config.error = musaErrorMemoryAllocation;
    state.config.problem =
        "cannot reserve the address ranges of the emulated devices. Fix: lower MUSA_EMULATOR_DEVICES or "
        "MUSA_EMULATOR_MEMORY_LIMIT, or raise the virtual memory limit (ulimit -v)";
    std::fprintf(stderr, "musa-emulator: %s\n", state.config.problem.c_str());
    return;
  }
  describe_device_address.store(&describe_address);
  m.base = reinterpret_cast<uintptr_t>(region);
  m.slot_shift = std::countr_zero(slot);
  const size_t guard = state.config.strict ? page_size() : 0;
  for (size_t i = 0; i < slots; ++i) {
    std::atomic<uint64_t>* published = i < state.devices.size() ? &state.devices[i]->usage.bytes : nullptr;
    m.spaces.emplace_back(m.base + i * slot, slot, guard, published);
  }
  m.spaces.emplace_back(m.base + slots * slot, virtual_slots * slot, /*guard=*/0);
}

void release_all_memory(Engine&) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  for (AddressSpace& space : m.spaces) {
    for (const auto& [base, allocation] : space.allocations()) {
      if (allocation.descriptor >= 0) {
        close(allocation.descriptor);
      }
    }
  }
  release_virtual_memory(m);
  m.spaces.clear();
  m.registrations.clear();
  m.registered.store(0);
  m.generation.fetch_add(1);
  if (m.size != 0) {
    munmap(reinterpret_cast<void*>(m.base), m.size);
  }
  m.base = 0;
  m.size = 0;
}

void release_device_memory(int device) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  AddressSpace& space = m.spaces[static_cast<size_t>(device)];
  while (!space.allocations().empty()) {
    space.release(space.allocations().begin()->first);
  }
  release_virtual_memory(m, device);
  m.generation.fetch_add(1);
}

musaError_t allocate_device(int device, size_t bytes, void** pointer) {
  *pointer = nullptr;
  if (bytes == 0) {
    return musaSuccess;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  AddressSpace& space = m.spaces[static_cast<size_t>(device)];
  const size_t limit = engine().config.memory_limit;
  if (bytes > limit || space.used() + bytes > limit) {
    return musaErrorMemoryAllocation;
  }
  const uintptr_t base = space.allocate(bytes, {.device = device});
  if (base == 0) {
    return musaErrorMemoryAllocation;
  }
  *pointer = reinterpret_cast<void*>(base);
  if (engine().config.poison) {
    std::memset(*pointer, 0xCD, space.allocations()[base].span);
  }
  close_unless_open(m, base, space.allocations()[base]);
  return musaSuccess;
}

musaError_t free_device(void* pointer) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (!m.reserved(address)) {
    return musaErrorInvalidValue;
  }
  AddressSpace& space = m.spaces[static_cast<size_t>(m.slot_of(address))];
  const auto found = space.find(address);
  if (&space == &m.pinned() || found == space.allocations().end() || found->second.imported) {
    return musaErrorInvalidValue; // musaFreeHost and musaIpcCloseMemHandle free those
  }
  m.generation.fetch_add(1);
  return space.release(address) ? musaSuccess : musaErrorInvalidValue;
}

musaError_t allocate_host(size_t bytes, void** pointer) {
  *pointer = nullptr;
  if (bytes == 0) {
    return musaSuccess;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const uintptr_t base = m.pinned().allocate(bytes, {.device = thread_state().device});
  *pointer = reinterpret_cast<void*>(base);
  return base != 0 ? musaSuccess : musaErrorMemoryAllocation;
}

musaError_t free_host(void* pointer) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  m.generation.fetch_add(1);
  return m.pinned().release(reinterpret_cast<uintptr_t>(pointer)) ? musaSuccess : musaErrorInvalidValue;
}

musaError_t allocate_managed(size_t bytes, void** pointer) {
  *pointer = nullptr;
  if (bytes == 0) {
    return musaErrorInvalidValue;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const uintptr_t base = m.managed().allocate(bytes, {.device = thread_state().device});
  *pointer = reinterpret_cast<void*>(base);
  return base != 0 ? musaSuccess : musaErrorMemoryAllocation;
}

musaError_t register_host(void* pointer, size_t bytes) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (bytes > kAddressLimit || begin > kAddressLimit - bytes) {
    return musaErrorInvalidValue;
  }
  if (m.reserved(begin)) {
    return m.slot_of(begin) == m.devices ? musaErrorHostMemoryAlreadyRegistered : musaErrorInvalidValue;
  }
  const auto next = m.registrations.lower_bound(begin + bytes);
  if (next != m.registrations.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes > begin) {
      return musaErrorHostMemoryAlreadyRegistered;
    }
  }
  m.registrations[begin] = {bytes, thread_state().device};
  m.registered.store(m.registrations.size());
  return musaSuccess;
}

musaError_t unregister_host(void* pointer) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const auto found = m.registrations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == m.registrations.end() || found->second.type != musaMemoryTypeHost) {
    return musaErrorHostMemoryNotRegistered;
  }
  m.registrations.erase(found);
  m.registered.store(m.registrations.size());
  return musaSuccess;
}

void register_symbol(const void* variable, size_t bytes) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  m.registrations.insert_or_assign(
      reinterpret_cast<uintptr_t>(variable), Registration{bytes, thread_state().device, musaMemoryTypeManaged});
  m.registered.store(m.registrations.size());
}

size_t symbol_size(const void* variable) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const auto found = m.registrations.find(reinterpret_cast<uintptr_t>(variable));
  return found != m.registrations.end() && found->second.type == musaMemoryTypeManaged ? found->second.bytes : 0;
}

void memory_usage(int device, size_t* used, size_t* total) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  *used = m.spaces[static_cast<size_t>(device)].used();
  *total = engine().config.memory_limit;
}

PointerInfo classify(const void* pointer) {
  Memory& m = memory();
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (!m.reserved(address)) {
    if (m.registered.load(std::memory_order_acquire) != 0) {
      MemoryLock lock(m.mutex);
      Registration registration;
      if (const uintptr_t base = find_registration(m, address, &registration)) {
        return {registration.type, registration.device, base, registration.bytes};
      }
    }
    return {};
  }
  ThreadState& thread = thread_state();
  const uint64_t generation = m.generation.load(std::memory_order_acquire);
  if (thread.cache_generation == generation) {
    for (const PointerInfo& cached : thread.cache) {
      if (address - cached.base < cached.bytes) {
        return cached;
      }
    }
  }
  MemoryLock lock(m.mutex);
  const int slot = m.slot_of(address);
  PointerInfo info;
  if (m.is_virtual(address)) {
    VirtualMemory& v = m.virtual_memory;
    const auto found = v.find(address);
    if (found == v.mappings.end()) {
      return {};
    }
    info = {musaMemoryTypeDevice, v.device_of(found->second), found->first, found->second.bytes};
  } else {
    AddressSpace& space = m.spaces[static_cast<size_t>(slot)];
    const auto found = space.find(address);
    if (found == space.allocations().end()) {
      return {};
    }
    info.type = slot < m.devices ? musaMemoryTypeDevice
        : slot == m.devices      ? musaMemoryTypeHost
                                 : musaMemoryTypeManaged;
    info.device = found->second.device;
    info.base = found->first;
    info.bytes = found->second.bytes;
  }
  if (thread.cache_generation != generation) {
    thread.cache[0] = thread.cache[1] = {};
    thread.cache_generation = generation;
  }
  thread.cache[thread.cache_next++ & 1] = info;
  return info;
}

int device_of_range(uintptr_t address) {
  const Memory& m = memory();
  const int slot = m.reserved(address) ? m.slot_of(address) : -1;
  return slot < m.devices ? slot : -1;
}

size_t live_allocations(int device) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  return m.spaces[static_cast<size_t>(device)].allocations().size() + live_physical(m, device);
}

size_t live_bytes(int device) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  return m.spaces[static_cast<size_t>(device)].used();
}

size_t live_host_allocations() {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  return m.spaces.empty() ? 0 : m.pinned().allocations().size() + m.managed().allocations().size();
}

size_t live_host_bytes() {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  return m.spaces.empty() ? 0 : m.pinned().used() + m.managed().used();
}

musaError_t check_transfer(const void* dst, size_t dst_bytes, const void* src, size_t src_bytes, musaMemcpyKind kind) {
  Memory& m = memory();
  const PointerInfo to = classify(dst);
  const PointerInfo from = classify(src);
  if (dst == nullptr || src == nullptr) {
    return musaErrorInvalidValue;
  }
  if (const musaError_t status = check_end(dst, dst_bytes, to, m); status != musaSuccess) {
    return status;
  }
  if (const musaError_t status = check_end(src, src_bytes, from, m); status != musaSuccess) {
    return status;
  }
  // Page-locked and managed memory is accessible from host and device; pageable memory and device memory are not.
  const bool to_device_ok = to.type != musaMemoryTypeUnregistered;
  const bool from_device_ok = from.type != musaMemoryTypeUnregistered;
  const bool to_host_ok = to.type != musaMemoryTypeDevice;
  const bool from_host_ok = from.type != musaMemoryTypeDevice;
  bool legal = false;
  switch (kind) {
    case musaMemcpyHostToHost: legal = to_host_ok && from_host_ok; break;
    case musaMemcpyHostToDevice: legal = to_device_ok && from_host_ok; break;
    case musaMemcpyDeviceToHost: legal = to_host_ok && from_device_ok; break;
    case musaMemcpyDeviceToDevice: legal = to_device_ok && from_device_ok; break;
    case musaMemcpyDefault: legal = true; break;
    default: return musaErrorInvalidMemcpyDirection;
  }
  return legal ? musaSuccess : musaErrorInvalidValue;
}

musaError_t check_fill(const void* pointer, size_t bytes) {
  const PointerInfo info = classify(pointer);
  if (info.type == musaMemoryTypeUnregistered) {
    return musaErrorInvalidValue;
  }
  return check_end(pointer, bytes, info, memory());
}

namespace {

// A direct system call: a sanitizer does not see that writers are blocked, and would report a race for these reads.
bool write_all(int descriptor, const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  off_t offset = 0;
  while (bytes != 0) {
    const long written = syscall(SYS_pwrite64, descriptor, next, bytes, offset);
    if (written <= 0) {
      return false;
    }
    next += written;
    offset += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

} // namespace

musaError_t share_allocation(void* pointer, int* descriptor, size_t* bytes, int* device) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (device_of_range(address) < 0) {
    return musaErrorInvalidValue;
  }
  AddressSpace& space = m.spaces[static_cast<size_t>(m.slot_of(address))];
  const auto found = space.find(address);
  if (found == space.allocations().end() || found->second.imported) {
    return musaErrorInvalidValue;
  }
  Allocation& allocation = found->second;
  *bytes = allocation.bytes;
  *device = allocation.device;
  if (allocation.descriptor >= 0) {
    *descriptor = allocation.descriptor;
    return musaSuccess;
  }
  // Private pages are faster, so only memory that is exported is moved to shared pages. The name is only informative;
  // the memfd has no file system entry and is freed with the last process that maps it.
  const int shared = memfd_create("musa-emulator", MFD_CLOEXEC);
  if (shared < 0) {
    return musaErrorOperatingSystem;
  }
  void* const pages = reinterpret_cast<void*>(found->first);
  if (ftruncate(shared, static_cast<off_t>(allocation.span)) != 0) {
    close(shared);
    return musaErrorMemoryAllocation;
  }
  bool copied = false;
  void* swapped = MAP_FAILED;
  {
    // The allocation may be larger than the shared part, and other threads may use the rest of it.
    const WritersHeldOff held(found->first, allocation.span);
    copied = write_all(shared, pages, allocation.span);
    if (copied) {
      swapped = mmap(pages, allocation.span, PROT_READ, MAP_SHARED | MAP_FIXED, shared, 0);
    }
  }
  if (swapped == MAP_FAILED) {
    close_unless_open(m, found->first, allocation);
    close(shared);
    return copied ? musaErrorOperatingSystem : musaErrorMemoryAllocation;
  }
  close_unless_open(m, found->first, allocation);
  allocation.descriptor = shared;
  *descriptor = shared;
  return musaSuccess;
}

musaError_t map_shared(int device, int descriptor, size_t bytes, void** pointer) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  AddressSpace& space = m.spaces[static_cast<size_t>(device)];
  const uintptr_t base = space.map_shared(bytes, descriptor, {.device = device});
  if (base == 0) {
    return musaErrorMemoryAllocation;
  }
  close_unless_open(m, base, space.allocations()[base]);
  *pointer = reinterpret_cast<void*>(base);
  return musaSuccess;
}

musaError_t unmap_shared(void* pointer) {
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (device_of_range(address) < 0) {
    return musaErrorInvalidValue;
  }
  AddressSpace& space = m.spaces[static_cast<size_t>(m.slot_of(address))];
  const auto found = space.allocations().find(address);
  if (found == space.allocations().end() || !found->second.imported) {
    return musaErrorInvalidValue;
  }
  m.generation.fetch_add(1);
  space.release(address);
  return musaSuccess;
}

MemoryAccess::MemoryAccess(Everything) {
  if (!strict()) {
    return;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  everything_ = true;
  if (m.everything_open++ == 0) {
    for (int device = 0; device < m.devices; ++device) {
      for (const auto& [base, allocation] : m.spaces[static_cast<size_t>(device)].allocations()) {
        set_access(base, allocation, true);
      }
    }
    refresh_mappings(m);
  }
}

MemoryAccess::MemoryAccess(const void* first, size_t first_bytes, const void* second, size_t second_bytes)
    : bytes_{first_bytes, second_bytes} {
  if (!strict()) {
    return;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  const uintptr_t addresses[] = {reinterpret_cast<uintptr_t>(first), reinterpret_cast<uintptr_t>(second)};
  for (int i = 0; i < 2; ++i) {
    if (m.is_virtual(addresses[i])) {
      opened_[i] = addresses[i];
      open_mappings(m, addresses[i], bytes_[i]);
      continue;
    }
    if (device_of_range(addresses[i]) < 0) {
      continue;
    }
    AddressSpace& space = m.spaces[static_cast<size_t>(m.slot_of(addresses[i]))];
    if (const auto found = space.find(addresses[i]); found != space.allocations().end()) {
      opened_[i] = found->first;
      if (found->second.open++ == 0 && m.everything_open == 0) {
        set_access(found->first, found->second, true);
      }
    }
  }
}

MemoryAccess::~MemoryAccess() {
  if (!everything_ && opened_[0] == 0 && opened_[1] == 0) {
    return;
  }
  Memory& m = memory();
  MemoryLock lock(m.mutex);
  if (everything_ && --m.everything_open == 0) {
    for (int device = 0; device < m.devices; ++device) {
      for (const auto& [base, allocation] : m.spaces[static_cast<size_t>(device)].allocations()) {
        close_unless_open(m, base, allocation);
      }
    }
    refresh_mappings(m);
  }
  for (int i = 0; i < 2; ++i) {
    const uintptr_t base = opened_[i];
    if (base == 0) {
      continue;
    }
    if (m.is_virtual(base)) {
      close_mappings(m, base, bytes_[i]);
      continue;
    }
    AddressSpace& space = m.spaces[static_cast<size_t>(m.slot_of(base))];
    // The memory may have been freed meanwhile, if a caller did not wait for its own work.
    if (const auto found = space.allocations().find(base); found != space.allocations().end()) {
      --found->second.open;
      close_unless_open(m, base, found->second);
    }
  }
}

bool describe_address(uintptr_t address, char* text, size_t capacity) {
  Memory& m = memory();
  const int device = device_of_range(address);
  if (device < 0 && !m.is_virtual(address)) {
    return false;
  }
  // The faulting thread may hold the lock itself.
  if (!m.mutex.try_lock()) {
    device < 0 ? std::snprintf(text, capacity, "virtual memory of a device")
               : std::snprintf(text, capacity, "device %d", device);
    return true;
  }
  if (device < 0) {
    describe_virtual(m, address, text, capacity);
    m.mutex.unlock();
    return true;
  }
  AddressSpace& space = m.spaces[static_cast<size_t>(device)];
  if (const auto found = space.find(address); found != space.allocations().end()) {
    std::snprintf(
        text, capacity, "device %d, byte %zu of the allocation of %zu bytes at %p", device,
        static_cast<size_t>(address - found->first), found->second.bytes, reinterpret_cast<void*>(found->first));
  } else {
    std::snprintf(text, capacity, "device %d, no live allocation (freed, or out of bounds)", device);
  }
  m.mutex.unlock();
  return true;
}

} // namespace musa_emulator
