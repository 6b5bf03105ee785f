// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/ipc/MUSAIpcCounters.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace c10::musa::ipc {
namespace {

// A message that is not yet received and released holds memory, so a program runs out of memory before it reaches this
// limit.
constexpr uint32_t kSlots = 1u << 20;
constexpr size_t kBytes = kSlots * sizeof(CounterWord); // sparse: unused pages take no memory
constexpr off_t kSenderByte = kSlots;
constexpr char kName[] = "torch_musa-shared";

enum State : uint32_t { kFree, kSent, kHeld, kReleased };

std::atomic<pid_t> sharing_process{0};

[[noreturn]] void refuse(SharingError::Kind kind, const std::string& text) { throw SharingError(kind, text); }

struct flock byte_lock(off_t byte, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// Whether another process holds the byte. These locks belong to a process; the kernel drops them when it ends.
bool locked_elsewhere(int descriptor, off_t byte) noexcept {
  struct flock lock = byte_lock(byte, F_WRLCK);
  return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

CounterWord* map_words(int descriptor) {
  void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<CounterWord*>(mapped);
}

std::string sender_gone(int32_t process) {
  return c10::str(
      "process ", process,
      ", which shared a musa tensor with this one, has ended before it was received.\n"
      "Likely causes: it put the tensor into a queue and ended at once; it was killed.\n"
      "Fix: keep the sending process alive until the receiver has what it needs (an Event, or join() after the last "
      "get()), or send a copy on the CPU: tensor.cpu().");
}

// The path of a descriptor's file, according to the kernel.
std::string file_of(int descriptor) {
  char path[64], text[256];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(path, text, sizeof text);
  return std::string(text, length > 0 ? static_cast<size_t>(length) : 0);
}

// Opens the file that the address names. The address came in a message, so the file is checked first, on a descriptor that
// can neither read nor write: a wrong file is never opened for writing, and one that is too short is never mapped.
int open_counters(const CounterAddress& address) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", address.process, address.descriptor);
  const int found = ::open(path, O_PATH | O_CLOEXEC);
  if (found < 0 && errno != ENOENT) {
    refuse(
        SharingError::Kind::Refused,
        c10::str(
            "what process ", address.process, " shares cannot be opened: ", path, ": ", std::strerror(errno),
            ".\nLikely causes: it runs as another user; too many open files here.\n"
            "Fix: run both processes as one user, and raise the limit with: ulimit -n 65536"));
  }
  struct stat status = {};
  if (found < 0 || fstat(found, &status) != 0 || status.st_ino != address.inode ||
      status.st_dev != address.file_system) {
    if (found >= 0) {
      close(found);
    }
    refuse(
        SharingError::Kind::SenderGone,
        sender_gone(address.process) +
            "\nAlso possible: sender and receiver are in different PID namespaces; containers must share one "
            "(docker run --pid=host --ipc=host).");
  }
  const std::string file = file_of(found);
  if (file != c10::str("/memfd:", kName, " (deleted)") || status.st_size != static_cast<off_t>(kBytes)) {
    close(found);
    refuse(
        SharingError::Kind::Refused,
        c10::str(
            "a message with a shared musa tensor names ", path, ", which is ", file, " with ", status.st_size,
            " bytes, instead of the ", kBytes,
            " bytes of counters of a process that shares tensors.\n"
            "Likely causes: the message was not made by torch_musa; the two processes run different versions of it.\n"
            "Fix: receive tensors only from processes that you trust, with one version of torch_musa."));
  }
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", found);
  const int descriptor = ::open(path, O_RDWR | O_CLOEXEC);
  const int reason = errno;
  close(found);
  if (descriptor < 0) {
    refuse(
        SharingError::Kind::Refused,
        c10::str(
            "what process ", address.process, " shares cannot be opened for writing: ", std::strerror(reason),
            ".\nLikely causes: it runs as another user; too many open files here.\n"
            "Fix: run both processes as one user, and raise the limit with: ulimit -n 65536"));
  }
  return descriptor;
}

// Peers by sender. Entries are kept while the sender lives, even when none of its memory is held: closing any descriptor of
// a file drops all locks of the process on it, so the file must be opened only once.
struct Peers {
  std::mutex mutex;
  std::vector<std::shared_ptr<PeerCounters>> known;
};

Peers& peers() {
  static auto& instance = *new Peers; // leaked: memory is released until the very end of the process
  return instance;
}

} // namespace

void claim_process() noexcept {
  pid_t unclaimed = 0;
  sharing_process.compare_exchange_strong(unclaimed, getpid());
}

bool of_this_process() noexcept { return getpid() == sharing_process.load(); }

SentCounters& SentCounters::get() {
  static auto& instance = *new SentCounters;
  return instance;
}

SentCounters::SentCounters() {
  descriptor_ = memfd_create(kName, MFD_CLOEXEC);
  struct stat status = {};
  struct flock alive = byte_lock(kSenderByte, F_WRLCK);
  if (descriptor_ < 0 || ftruncate(descriptor_, kBytes) != 0 || fstat(descriptor_, &status) != 0 ||
      (words_ = map_words(descriptor_)) == nullptr || fcntl(descriptor_, F_SETLK, &alive) != 0) {
    const int reason = errno;
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
    refuse(
        SharingError::Kind::Refused,
        c10::str(
            "this process cannot make the page by which shared musa tensors are counted: ", std::strerror(reason),
            ".\nLikely causes: too many open files; no memory left.\nFix: raise the limit with: ulimit -n 65536"));
  }
  inode_ = status.st_ino;
  file_system_ = status.st_dev;
}

CounterAddress SentCounters::take() {
  const std::lock_guard lock(mutex_);
  uint32_t slot = next_;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (next_ < kSlots) {
    ++next_;
  } else {
    refuse(
        SharingError::Kind::Refused,
        c10::str(
            "this process has ", kSlots,
            " shared musa tensors that no receiver has released.\n"
            "Fix: let the receivers drop what they received, or send fewer, larger tensors."));
  }
  words_[slot].store(kSent, std::memory_order_release);
  return {getpid(), descriptor_, inode_, file_system_, slot};
}

void SentCounters::free_slot(uint32_t slot) {
  const std::lock_guard lock(mutex_);
  words_[slot].store(kFree, std::memory_order_release);
  free_.push_back(slot);
}

bool SentCounters::in_use(uint32_t slot) const {
  return words_[slot].load(std::memory_order_acquire) == kSent || held(slot);
}

bool SentCounters::held(uint32_t slot) const {
  // The receiver locks before it marks, so a mark without a lock is from a process that has ended.
  return words_[slot].load(std::memory_order_acquire) == kHeld && locked_elsewhere(descriptor_, slot);
}

void SentCounters::receive_own(uint32_t slot) {
  uint32_t expected = kSent;
  if (slot >= kSlots || !words_[slot].compare_exchange_strong(expected, kReleased)) {
    refuse(
        SharingError::Kind::Refused,
        "a message with a shared musa tensor was received a second time.\n"
        "Likely cause: the same pickled bytes were loaded twice.\nFix: put the tensor into the queue once per receiver.");
  }
}

std::shared_ptr<PeerCounters> PeerCounters::open(const CounterAddress& address) {
  Peers& all = peers();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<PeerCounters> found;
  std::erase_if(all.known, [&](const std::shared_ptr<PeerCounters>& peer) {
    if (peer->process_ == address.process && peer->inode_ == address.inode &&
        peer->file_system_ == address.file_system) {
      found = peer;
      return false;
    }
    return peer.use_count() == 1 && !peer->sender_alive();
  });
  if (found == nullptr) {
    const int descriptor = open_counters(address);
    found.reset(new PeerCounters);
    found->descriptor_ = descriptor;
    found->inode_ = address.inode;
    found->file_system_ = address.file_system;
    found->process_ = address.process;
    found->words_ = map_words(descriptor);
    TORCH_CHECK(
        found->words_ != nullptr, "Cannot map the counters of process ", address.process, ": ", std::strerror(errno));
    all.known.push_back(found);
  }
  if (!found->sender_alive()) {
    refuse(SharingError::Kind::SenderGone, sender_gone(address.process));
  }
  return found;
}

PeerCounters::~PeerCounters() {
  if (words_ != nullptr) {
    munmap(words_, kBytes);
  }
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

void PeerCounters::receive(uint32_t slot) {
  const std::lock_guard guard(mutex_);
  if (slot < kSlots) {
    struct flock lock = byte_lock(slot, F_WRLCK);
    while (words_[slot].load(std::memory_order_acquire) == kSent) {
      // Lock first: a mark without a lock means that the receiver has died.
      if (fcntl(descriptor_, F_SETLK, &lock) != 0) {
        sched_yield(); // the slot's last receiver has marked it and is about to unlock it
        continue;
      }
      uint32_t expected = kSent;
      if (words_[slot].compare_exchange_strong(expected, kHeld)) {
        return;
      }
      lock.l_type = F_UNLCK;
      (void)fcntl(descriptor_, F_SETLK, &lock);
      break;
    }
  }
  refuse(
      SharingError::Kind::Refused,
      c10::str(
          "a message with a musa tensor that process ", process_,
          " shared was received a second time.\n"
          "Likely causes: the same pickled bytes were loaded twice, or by two processes.\n"
          "Fix: put the tensor into the queue once per receiver."));
}

void PeerCounters::release(uint32_t slot) noexcept {
  const std::lock_guard guard(mutex_);
  // Mark first: once unlocked, the slot may be used for another message at any time.
  words_[slot].store(kReleased, std::memory_order_release);
  struct flock lock = byte_lock(slot, F_UNLCK);
  (void)fcntl(descriptor_, F_SETLK, &lock); // unlocking a lock that is held cannot fail but for lack of kernel memory
}

bool PeerCounters::sender_alive() const noexcept { return locked_elsewhere(descriptor_, kSenderByte); }

} // namespace c10::musa::ipc
