// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// One rank of a communicator. Its calls run one at a time, in the order of issue, on any streams.
#pragma once

#include <mccl.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/state.h"
#include "ledger.h"
#include "reduction.h"
#include "transport.h"

namespace musa_emulator::mccl {

class Communicator {
 public:
  // Blocks until all ranks have connected. Throws std::invalid_argument for invalid arguments of the caller.
  Communicator(const mcclUniqueId& id, int ranks, int rank, const Device& device);
  ~Communicator();

  const int ranks, rank;
  const int device; // ordinal
  std::string name() const; // for the log

  // ---- issuing, on the caller's threads

  // Enqueues the launch on the stream, after all launches that were issued before.
  musaError_t issue(Stream& stream, std::shared_ptr<Launch> launch);
  // Waits for all issued launches.
  musaError_t drain();
  // Waits until the other ranks leave or exit, as NCCL does. Does not wait if a process has several ranks, because it
  // destroys them one after the other.
  void leave();

  mcclRedOp_t add_multiplier(PreMultiplier multiplier);
  bool remove_multiplier(mcclRedOp_t op);
  // Returns nullopt if `op` is not an operation of this communicator.
  std::optional<Reduction> reduction(mcclRedOp_t op) const;

  mcclResult_t async_error() const { return error_.load(); }
  // Aborts the running calls and skips the pending ones. Returns when none is running.
  void abort();

  // ---- running, on the thread that drives a stream

  // Calls work(), unless the communicator was aborted. A call whose peer exited or made a different call hangs until
  // abort(), like a call on a device.
  template <class Work>
  void run(Work&& work) {
    if (!begin()) {
      return;
    }
    try {
      work();
    } catch (const c10::Error& error) {
      fail(mcclInternalError, error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(mcclRemoteError, error.what());
    }
    end();
  }
  // Thrown when the communicator is aborted. The functions below never return normally.
  struct Aborted : std::exception {};
  [[noreturn]] void wait_for_abort();
  [[noreturn]] void hang(const std::string& why);
  // As hang(), for calls that differ between ranks: the asynchronous error becomes mcclInvalidUsage at once.
  [[noreturn]] void mismatch(const std::string& why);

  Transport* transport() const { return transport_.get(); } // null for one rank
  Ledger& ledger() { return ledger_; }
  uint64_t next_collective() { return ++collectives_; }
  uint64_t next_sent_to(int peer) { return ++sent_[static_cast<size_t>(peer)]; }
  uint64_t next_received_from(int peer) { return ++received_[static_cast<size_t>(peer)]; }

 private:
  bool begin();
  void end();
  void fail(mcclResult_t result, const std::string& why);

  std::unique_ptr<Transport> transport_;
  Ledger ledger_;
  bool alone_ = true; // all other ranks are in other processes

  // Held while a call waits for space in its stream. Calls that finish free space and may need mutex_, so that is a
  // separate mutex.
  std::mutex issue_mutex_;
  Fence last_; // guarded by issue_mutex_

  mutable std::mutex mutex_; // guards the fields below
  std::condition_variable changed_;
  bool aborted_ = false;
  int running_ = 0;
  std::map<int, std::shared_ptr<const PreMultiplier>> multipliers_;
  int next_multiplier_ = mcclAvg + 1;

  std::atomic<mcclResult_t> error_{mcclSuccess};

  // Used only by the thread that runs the current call.
  uint64_t collectives_ = 0;
  std::vector<uint64_t> sent_, received_;
};

} // namespace musa_emulator::mccl
