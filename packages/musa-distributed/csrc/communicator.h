// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// This rank's end of an MCCL communicator.
#pragma once

#include <c10/musa/MUSAEvent.h>
#include <mccl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace c10d::mccl {

// One thread at a time makes calls on it, holding lock(). Any thread may call async_error(), abort() and end().
class Communicator {
 public:
  // Blocks until all ranks have called it.
  Communicator(const mcclUniqueId& id, int rank, int ranks, c10::Device device, bool high_priority);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const int rank, ranks;
  const c10::Device device;
  const c10::musa::MUSAStream stream; // for asynchronous calls

  using Lock = std::unique_lock<std::mutex>;
  Lock lock() { return Lock(mutex_); }
  // Raises an error after abort() and end(). Requires lock() until the last use of the handle.
  mcclComm_t handle() const;
  // Makes the stream wait for earlier calls if they were made on another stream, because MCCL requires one order for
  // all calls. Requires lock(). Not for calls captured into a graph, which are ordered by the graph.
  void join(const c10::musa::MUSAStream& stream);
  // Records that a call was enqueued; `end` is the event after it. Requires lock(). Not for captured calls.
  void issued_on(const c10::musa::MUSAStream& stream, std::shared_ptr<c10::musa::MUSAEvent> end);

  // Returns the error that MCCL found asynchronously, or nullopt.
  std::optional<std::string> async_error() const;
  // Aborts pending calls. The other ranks detect this and fail too.
  void abort();
  // Waits for pending calls, which may wait for other ranks in turn. Does nothing after abort().
  void end();
  bool aborted() const { return aborted_.load(); }

 private:
  mcclComm_t take_handle();

  std::mutex mutex_; // guards last_stream_ and last_end_, and is held while a call uses the handle
  mutable std::mutex
      handle_mutex_; // guards handle_; held for a moment only, so that a blocked call does not block others
  mcclComm_t handle_ = nullptr;
  std::atomic<bool> aborted_{false};
  std::optional<c10::musa::MUSAStream> last_stream_;
  std::shared_ptr<c10::musa::MUSAEvent> last_end_;
};

} // namespace c10d::mccl
