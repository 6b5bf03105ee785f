// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// This rank's side of a communicator of MCCL.
#pragma once

#include <c10/musa/MUSAEvent.h>
#include <mccl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace c10d::mccl {

// Calls on it are made by one thread at a time, under lock(). abort() may be called by any.
class Communicator {
 public:
  // Blocks until all ranks have called it.
  Communicator(const mcclUniqueId& id, int rank, int ranks, c10::Device device, bool high_priority);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const int rank, ranks;
  const c10::Device device;
  const c10::musa::MUSAStream stream; // of its asynchronous calls

  using Lock = std::unique_lock<std::mutex>;
  Lock lock() {
    return Lock(mutex_);
  }
  // Raises once it was aborted. Under lock().
  mcclComm_t handle() const;
  // Lets the stream wait for the calls before, if they were made on another one: MCCL wants its calls in one order. Under
  // lock().
  // Not for calls that a graph captures, whose order is the graph's.
  void join(const c10::musa::MUSAStream& stream);
  // A call was issued, at whose end the event is. Under lock(), and not for captured calls.
  void issued_on(const c10::musa::MUSAStream& stream, std::shared_ptr<c10::musa::MUSAEvent> end);

  // What went wrong behind the program's back.
  std::optional<std::string> async_error() const;
  // Ends what waits for other ranks. Those of the others notice and fail.
  void abort();
  // Waits for what was issued, and perhaps for the other ranks to end it too. Does nothing after abort().
  void end();
  bool aborted() const {
    return aborted_.load();
  }

 private:
  std::mutex mutex_;
  std::atomic<mcclComm_t> handle_{nullptr};
  std::atomic<bool> aborted_{false};
  std::optional<c10::musa::MUSAStream> last_stream_;
  std::shared_ptr<c10::musa::MUSAEvent> last_end_;
};

} // namespace c10d::mccl
