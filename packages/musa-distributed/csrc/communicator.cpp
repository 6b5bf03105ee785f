// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "communicator.h"

#include <thread>
#include <utility>

#include "errors.h"

namespace c10d::mccl {
namespace {

// Time that abort() waits for a thread within a call: that thread may itself be blocked in this communicator.
constexpr std::chrono::seconds kAbortLimit{1};

} // namespace

Communicator::Communicator(const mcclUniqueId& id, int own, int count, c10::Device on, bool high_priority)
    : rank(own), ranks(count), device(on), stream(c10::musa::getStreamFromPool(high_priority, on.index())) {
  const c10::musa::MUSAGuard guard(device);
  MCCL_CHECK(mcclCommInitRank(&handle_, ranks, id, rank));
}

Communicator::~Communicator() { end(); }

mcclComm_t Communicator::take_handle() {
  const std::lock_guard lock(handle_mutex_);
  return std::exchange(handle_, nullptr);
}

void Communicator::end() {
  if (aborted()) {
    return; // without the lock, which a thread may hold that waits for the abort
  }
  const auto no_calls = lock();
  if (mcclComm_t handle = take_handle()) {
    const mcclResult_t result = mcclCommDestroy(handle);
    if (result != mcclSuccess) {
      TORCH_WARN("An MCCL communicator could not be destroyed: ", mcclGetErrorString(result));
    }
  }
}

mcclComm_t Communicator::handle() const {
  const std::lock_guard lock(handle_mutex_);
  if (handle_ == nullptr) {
    C10_THROW_ERROR(
        DistBackendError,
        "The communicator was aborted or destroyed.\nFix: torch.distributed.destroy_process_group(), then "
        "init_process_group().");
  }
  return handle_;
}

void Communicator::join(const c10::musa::MUSAStream& now) {
  if (last_stream_.has_value() && *last_stream_ != now) {
    last_end_->block(now);
  }
}

void Communicator::issued_on(const c10::musa::MUSAStream& now, std::shared_ptr<c10::musa::MUSAEvent> end) {
  last_stream_ = now;
  last_end_ = std::move(end);
}

std::optional<std::string> Communicator::async_error() const {
  const std::lock_guard lock(handle_mutex_); // so that the handle is not destroyed meanwhile
  mcclResult_t error = mcclSuccess;
  if (handle_ == nullptr || mcclCommGetAsyncError(handle_, &error) != mcclSuccess || error == mcclSuccess) {
    return std::nullopt;
  }
  return mcclGetErrorString(error);
}

void Communicator::abort() {
  aborted_.store(true);
  // try_lock in a loop, because ThreadSanitizer misreports mutexes with timeouts.
  Lock lock(mutex_, std::defer_lock);
  const auto deadline = std::chrono::steady_clock::now() + kAbortLimit;
  while (!lock.try_lock() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (mcclComm_t handle = take_handle()) {
    c10::musa::OptionalMUSAGuard guard;
    try {
      guard.set_device(device);
    } catch (const c10::Error&) {
      // The device is lost, or the process is exiting while an abandoned start completes. Watchdog threads call this,
      // so the error is ignored: calls that wait for other ranks must be aborted in any case, and MCCL reports its own
      // failure.
    }
    const mcclResult_t result = mcclCommAbort(handle);
    if (result != mcclSuccess) {
      TORCH_WARN("An MCCL communicator could not be aborted: ", mcclGetErrorString(result));
    }
  }
}

} // namespace c10d::mccl
