// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

// Reference counts for shared device memory, kept in shared memory so that the exporting process sees when the last
// receiver releases it.
//
// Every message that carries shared memory has a slot in a page that the sender keeps (`SentCounters`); the receiver marks
// it. The page is an anonymous file, which a receiver opens through /proc/<sender>/fd: it has no name, so nothing is left
// behind however the processes end. Whether a process is alive is detected by kernel locks on that file (a byte for each
// slot, and one for the sender), which the kernel drops when the process that holds them ends, killed or not.
namespace c10::musa::ipc {

// A failure to share memory, apart from failures of the SDK. The text has the cause and the fix.
class C10_MUSA_API SharingError : public std::runtime_error {
 public:
  enum class Kind { Refused, SenderGone };
  SharingError(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

// Identifies a slot to another process.
struct CounterAddress {
  int32_t process = 0;
  int32_t descriptor = 0;
  uint64_t inode = 0; // with file_system: detects a reused descriptor or process id
  uint64_t file_system = 0;
  uint32_t slot = 0;
};

using CounterWord = std::atomic<uint32_t>;
static_assert(CounterWord::is_always_lock_free, "the words are shared between processes");

// The slots of this process. Thread-safe. Never used in a forked child: see `of_this_process`.
class SentCounters {
 public:
  // Created at the first call. Raises SharingError if the system refuses.
  static SentCounters& get();

  // Returns a free slot, now marked as sent. Raises SharingError if all are taken.
  CounterAddress take();
  // The slot may be used again.
  void free_slot(uint32_t slot);
  // Whether the message is on its way, or its receiver lives and has not released it.
  bool in_use(uint32_t slot) const;
  // Whether a living process has received the message and not released it.
  bool held(uint32_t slot) const;
  // Claims a message that has come back to the process that sent it. Raises if it has been received before.
  void receive_own(uint32_t slot);

 private:
  SentCounters();

  int descriptor_ = -1;
  uint64_t inode_ = 0, file_system_ = 0;
  CounterWord* words_ = nullptr;
  std::mutex mutex_; // guards the fields below
  std::vector<uint32_t> free_;
  uint32_t next_ = 0;
};

// The slots of one other process. Thread-safe.
class PeerCounters {
 public:
  // Raises SharingError if the sender has ended or cannot be reached, or if the address names another file than the counters of
  // a process.
  static std::shared_ptr<PeerCounters> open(const CounterAddress& address);
  ~PeerCounters();
  PeerCounters(const PeerCounters&) = delete;
  PeerCounters& operator=(const PeerCounters&) = delete;

  // Claims a message. Raises SharingError if it has been received before.
  void receive(uint32_t slot);
  // Called once the process no longer uses the memory.
  void release(uint32_t slot) noexcept;
  bool sender_alive() const noexcept;
  // True for the first call after the sender's end: it is reported once.
  bool claim_report() noexcept { return !reported_.exchange(true); }
  // True for the first call.
  bool claim_watch() noexcept { return !watched_.exchange(true); }
  int32_t process() const noexcept { return process_; }

 private:
  PeerCounters() = default;

  int descriptor_ = -1;
  uint64_t inode_ = 0, file_system_ = 0;
  int32_t process_ = 0;
  CounterWord* words_ = nullptr;
  std::atomic<bool> reported_{false};
  std::atomic<bool> watched_{false};
  std::mutex mutex_; // the kernel's locks are per process, so threads need a lock of their own to receive and release
};

// Called when sharing begins; later objects belong to this process.
void claim_process() noexcept;
// False before that, and in a forked child: the objects that a child finds are the parent's, whose memory and counters it
// must not touch.
bool of_this_process() noexcept;

} // namespace c10::musa::ipc
