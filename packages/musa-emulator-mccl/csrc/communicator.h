// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// One rank's side of a communicator. Its calls run one after the other, in the order of issue, on whatever streams.
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
  // Blocks until all ranks are there. Throws: std::invalid_argument for what the caller did wrong.
  Communicator(const mcclUniqueId& id, int ranks, int rank, const Device& device);
  ~Communicator();

  const int ranks, rank;
  const int device; // ordinal
  std::string name() const; // for the log

  // ---- issue, from the caller's threads

  // Puts the launch on the stream behind all that was issued before.
  musaError_t issue(Stream& stream, std::shared_ptr<Launch> launch);
  // Waits for what was issued.
  musaError_t drain();
  // Waits until the other ranks leave too, or are gone, as NCCL does. Not where a process has several ranks: it ends them one
  // after the other.
  void leave();

  mcclRedOp_t add_multiplier(PreMultiplier multiplier);
  bool remove_multiplier(mcclRedOp_t op);
  // Empty for what is no operation of this communicator.
  std::optional<Reduction> reduction(mcclRedOp_t op) const;

  mcclResult_t async_error() const { return error_.load(); }
  // Ends what is running and lets the rest do nothing. Returns when nothing runs.
  void abort();

  // ---- run, from the thread that drives a stream

  // Calls work(), unless the communicator was aborted. A call that cannot end, since a peer is gone or has called something
  // else, lasts until abort(), as on a device.
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
  // Never returns to the work: throws Aborted once somebody aborts.
  struct Aborted : std::exception {};
  [[noreturn]] void wait_for_abort();
  [[noreturn]] void hang(const std::string& why);

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
  bool alone_ = true; // no other rank is of this process

  // Held while a call waits for room in its stream. Calls make room by ending, so that what they need is under the other.
  std::mutex issue_mutex_;
  Fence last_; // under issue_mutex_

  mutable std::mutex mutex_; // guards what follows
  std::condition_variable changed_;
  bool aborted_ = false;
  int running_ = 0;
  std::map<int, std::shared_ptr<const PreMultiplier>> multipliers_;
  int next_multiplier_ = mcclAvg + 1;

  std::atomic<mcclResult_t> error_{mcclSuccess};

  // Of the thread whose turn it is.
  uint64_t collectives_ = 0;
  std::vector<uint64_t> sent_, received_;
};

} // namespace musa_emulator::mccl
