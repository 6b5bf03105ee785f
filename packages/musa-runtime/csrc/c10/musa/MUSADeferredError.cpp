// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSADeferredError.h>

#include <c10/util/Exception.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace c10::musa {
namespace {

constexpr std::chrono::minutes kComingLimit{1};

struct Deferred {
  std::mutex mutex; // guards the fields below
  std::condition_variable changed;
  std::exception_ptr first;
  size_t more = 0;
  size_t coming = 0; // errors that threads have announced
};

// The errors that this thread has announced and not deferred yet.
thread_local size_t announced = 0;

Deferred& deferred() {
  static Deferred& instance = *new Deferred();
  return instance;
}

// Call with the mutex held.
void update(Deferred& errors) {
  deferred_error_pending.store(errors.first != nullptr || errors.coming != 0, std::memory_order_release);
  errors.changed.notify_all();
}

} // namespace

ComingError::ComingError() {
  Deferred& errors = deferred();
  const std::lock_guard<std::mutex> lock(errors.mutex);
  ++errors.coming;
  ++announced;
  update(errors);
}

ComingError::~ComingError() {
  if (announced == 0) {
    return; // the error has been deferred
  }
  Deferred& errors = deferred();
  const std::lock_guard<std::mutex> lock(errors.mutex);
  --errors.coming;
  --announced;
  update(errors);
}

std::atomic<bool> deferred_error_pending{false};

void defer_error(std::exception_ptr error) {
  Deferred& errors = deferred();
  std::lock_guard<std::mutex> lock(errors.mutex);
  if (errors.first == nullptr) {
    errors.first = std::move(error);
  } else {
    ++errors.more; // errors after the first are mostly its consequences
  }
  errors.coming -= std::exchange(announced, 0);
  update(errors);
}

void defer_error(std::string message) {
  defer_error(
      std::make_exception_ptr(c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, std::move(message))));
}

void forget_deferred_error(const std::exception_ptr& error) {
  Deferred& errors = deferred();
  std::lock_guard<std::mutex> lock(errors.mutex);
  if (errors.first == error) {
    errors.first = nullptr;
    errors.more = 0;
    update(errors);
  }
}

void raise_deferred_error() {
  Deferred& errors = deferred();
  std::exception_ptr first;
  size_t more = 0;
  {
    std::unique_lock<std::mutex> lock(errors.mutex);
    if (announced == 0) { // the thread that announced an error must not wait for itself
      errors.changed.wait_for(lock, kComingLimit, [&] { return errors.first != nullptr || errors.coming == 0; });
    }
    first = std::exchange(errors.first, nullptr);
    more = std::exchange(errors.more, 0);
    update(errors);
  }
  if (first == nullptr) {
    return; // another thread has raised it
  }
  try {
    std::rethrow_exception(first);
  } catch (c10::Error& error) {
    if (more != 0) {
      error.add_context(c10::str(more, " more such errors since then."));
    }
    throw;
  }
}

} // namespace c10::musa
