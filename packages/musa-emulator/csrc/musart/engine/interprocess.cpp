// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A handle identifies a descriptor of the exporting process, which others open through /proc/<pid>/fd. So nothing is
// left behind when a process crashes, but the exporter must be alive when a handle is opened.
#include "engine/interprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "engine/api.h"
#include "engine/memory.h"

namespace musa_emulator {
namespace {

struct EventPage {
  std::atomic<uint64_t> recorded;
  std::atomic<uint64_t> completed;
  std::atomic<uint32_t> ring; // futex word, incremented at each completion
  std::atomic<int32_t> recorder; // the process that recorded last
};

struct HandleContent {
  uint32_t magic;
  int32_t process;
  int32_t descriptor;
  int32_t device;
  uint64_t bytes;
  uint64_t inode, file_system; // detect a reused descriptor number
};
static_assert(sizeof(HandleContent) <= MUSA_IPC_HANDLE_SIZE);

constexpr uint32_t kMemoryMagic = 0x4d454d31;
constexpr uint32_t kEventMagic = 0x45565431;
constexpr size_t kPage = 4096;
constexpr char kMemoryName[] = "musa-emulator";
constexpr char kEventName[] = "musa-emulator-event";

// Whether the descriptor is an anonymous file with this name.
bool is_memfd(int descriptor, const char* name) {
  char path[64], expected[64], found[sizeof expected];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  const int length = std::snprintf(expected, sizeof expected, "/memfd:%s (deleted)", name);
  return readlink(path, found, sizeof found) == length &&
      std::memcmp(found, expected, static_cast<size_t>(length)) == 0;
}

template <class Handle>
musaError_t write_handle(uint32_t magic, int descriptor, int device, size_t bytes, Handle* handle) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    return musaErrorOperatingSystem;
  }
  const HandleContent content{magic, getpid(), descriptor, device, bytes, status.st_ino, status.st_dev};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &content, sizeof content);
  return musaSuccess;
}

template <class Handle>
musaError_t open_handle(uint32_t magic, const Handle& handle, HandleContent* content, int* descriptor) {
  std::memcpy(content, &handle, sizeof *content);
  if (content->magic != magic) {
    return musaErrorInvalidValue;
  }
  if (content->process == getpid()) {
    return musaErrorDeviceUninitialized; // as on a device, a handle cannot be opened in the process that exported it
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", content->process, content->descriptor);
  // Opened with O_PATH first: a handle comes from another process, so its target is checked before it is opened for
  // writing.
  const int found = open(path, O_PATH | O_CLOEXEC);
  if (found < 0) {
    const int reason = errno;
    std::fprintf(
        stderr,
        "musa-emulator: cannot open an IPC handle from process %d: %s.\n"
        "  Likely causes: that process has ended; it runs as another user; it is in another PID namespace "
        "(containers must share one). Fix: docker run --pid=....\n",
        content->process, std::strerror(reason));
    return reason == ENOENT ? musaErrorInvalidResourceHandle : musaErrorOperatingSystem;
  }
  struct stat status;
  const char* const name = magic == kMemoryMagic ? kMemoryName : kEventName;
  const bool valid = fstat(found, &status) == 0 && status.st_ino == content->inode &&
      status.st_dev == content->file_system && is_memfd(found, name) &&
      static_cast<uint64_t>(status.st_size) >= content->bytes && content->bytes != 0;
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", found);
  *descriptor = valid ? open(path, O_RDWR | O_CLOEXEC) : -1;
  close(found);
  if (!valid) {
    return musaErrorInvalidResourceHandle; // the memory was freed and its descriptor reused
  }
  return *descriptor >= 0 ? musaSuccess : musaErrorOperatingSystem;
}

} // namespace

struct InterprocessEvent {
  int descriptor = -1;
  EventPage* page = nullptr;

  ~InterprocessEvent() {
    if (page != nullptr) {
      munmap(page, kPage);
    }
    if (descriptor >= 0) {
      close(descriptor);
    }
  }

  bool map() {
    void* mapped = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    page = mapped == MAP_FAILED ? nullptr : static_cast<EventPage*>(mapped);
    return page != nullptr;
  }
};

musaError_t create_interprocess(std::shared_ptr<InterprocessEvent>* shared) {
  auto created = std::make_shared<InterprocessEvent>();
  created->descriptor = memfd_create(kEventName, MFD_CLOEXEC);
  if (created->descriptor < 0 || ftruncate(created->descriptor, kPage) != 0 || !created->map()) {
    return musaErrorOperatingSystem;
  }
  *shared = std::move(created);
  return musaSuccess;
}

uint64_t begin_interprocess_record(InterprocessEvent& shared) {
  shared.page->recorder.store(getpid());
  return shared.page->recorded.fetch_add(1) + 1;
}

void finish_interprocess_record(InterprocessEvent& shared, uint64_t target) {
  uint64_t completed = shared.page->completed.load();
  while (completed < target && !shared.page->completed.compare_exchange_weak(completed, target)) {}
  shared.page->ring.fetch_add(1);
  syscall(SYS_futex, &shared.page->ring, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

uint64_t interprocess_recorded(const InterprocessEvent& shared) { return shared.page->recorded.load(); }

bool interprocess_reached(const InterprocessEvent& shared, uint64_t target) {
  if (shared.page->completed.load(std::memory_order_acquire) >= target) {
    return true;
  }
  const pid_t recorder = shared.page->recorder.load();
  return recorder != getpid() && kill(recorder, 0) != 0 && errno == ESRCH;
}

void wait_interprocess(const InterprocessEvent& shared, uint64_t target) {
  while (true) {
    const uint32_t ring = shared.page->ring.load();
    if (interprocess_reached(shared, target) || (gate.load() & kGateUnloading) != 0) {
      return;
    }
    // With a timeout, to detect that the recording process exited without a wake-up.
    const timespec patience{0, 20'000'000};
    syscall(SYS_futex, &shared.page->ring, FUTEX_WAIT, ring, &patience, nullptr, 0);
  }
}

musaError_t export_memory(void* pointer, musaIpcMemHandle_t* handle) {
  int descriptor = -1;
  size_t bytes = 0;
  int device = 0;
  if (const musaError_t status = share_allocation(pointer, &descriptor, &bytes, &device); status != musaSuccess) {
    return status;
  }
  return write_handle(kMemoryMagic, descriptor, device, bytes, handle);
}

musaError_t import_memory(int device, const musaIpcMemHandle_t& handle, void** pointer) {
  HandleContent content;
  int descriptor = -1;
  if (const musaError_t status = open_handle(kMemoryMagic, handle, &content, &descriptor); status != musaSuccess) {
    return status;
  }
  const musaError_t status = map_shared(device, descriptor, content.bytes, pointer);
  if (status != musaSuccess) {
    close(descriptor);
  }
  return status;
}

musaError_t close_memory(void* pointer) { return unmap_shared(pointer); }

musaError_t export_interprocess(const InterprocessEvent& shared, int device, musaIpcEventHandle_t* handle) {
  return write_handle(kEventMagic, shared.descriptor, device, kPage, handle);
}

musaError_t import_interprocess(const musaIpcEventHandle_t& handle, std::shared_ptr<InterprocessEvent>* shared) {
  HandleContent content;
  auto opened = std::make_shared<InterprocessEvent>();
  if (const musaError_t status = open_handle(kEventMagic, handle, &content, &opened->descriptor);
      status != musaSuccess) {
    return status;
  }
  if (content.bytes != kPage) {
    return musaErrorInvalidValue;
  }
  if (!opened->map()) {
    return musaErrorOperatingSystem;
  }
  *shared = std::move(opened);
  return musaSuccess;
}

} // namespace musa_emulator
