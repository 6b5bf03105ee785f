// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/usage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace musa_emulator {
namespace {

UsagePage* page = nullptr;

// Returns nullptr if the system has no shared memory for this process.
void* map_shared(const std::string& name) {
  int descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor >= 0 && descriptor <= STDERR_FILENO) {
    // The program has closed its standard streams, and may open others under their numbers.
    const int other = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(descriptor);
    descriptor = other;
  }
  if (descriptor < 0) {
    return nullptr;
  }
  void* mapped = ftruncate(descriptor, sizeof(UsagePage)) == 0
      ? mmap(nullptr, sizeof(UsagePage), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
      : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    close(descriptor);
    return nullptr;
  }
  return mapped; // the descriptor stays open: libmtml opens the page through it
}

} // namespace

std::string usage_name(const Config& config) { return "musa-emulator:" + config.machine; }

void publish_usage(const Config& config) {
  if (page == nullptr) {
    void* memory = map_shared(usage_name(config));
    page = memory != nullptr ? new (memory) UsagePage : new UsagePage;
    page->owner = getpid();
    page->magic.store(UsagePage::kMagic, std::memory_order_release);
    return;
  }
  for (DeviceUsage& usage : page->devices) {
    usage.bytes.store(0, std::memory_order_relaxed);
    usage.running.store(0, std::memory_order_relaxed);
    usage.active.store(false, std::memory_order_relaxed);
  }
}

DeviceUsage& usage_of(int physical) { return page->devices[static_cast<size_t>(physical)]; }

} // namespace musa_emulator
