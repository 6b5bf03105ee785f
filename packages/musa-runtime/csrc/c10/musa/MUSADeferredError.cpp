// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSADeferredError.h>

#include <c10/util/Exception.h>

#include <mutex>
#include <utility>

namespace c10::musa {
namespace {

struct Deferred {
  std::mutex mutex; // guards first and more
  std::exception_ptr first;
  size_t more = 0;
};

Deferred& deferred() {
  static Deferred& instance = *new Deferred();
  return instance;
}

} // namespace

std::atomic<bool> deferred_error_pending{false};

void defer_error(std::exception_ptr error) {
  Deferred& errors = deferred();
  std::lock_guard<std::mutex> lock(errors.mutex);
  if (errors.first == nullptr) {
    errors.first = std::move(error);
  } else {
    ++errors.more; // errors after the first are mostly its consequences
  }
  deferred_error_pending.store(true, std::memory_order_release);
}

void defer_error(std::string message) {
  defer_error(std::make_exception_ptr(
      c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, std::move(message))));
}

void forget_deferred_error(const std::exception_ptr& error) {
  Deferred& errors = deferred();
  std::lock_guard<std::mutex> lock(errors.mutex);
  if (errors.first == error) {
    errors.first = nullptr;
    errors.more = 0;
    deferred_error_pending.store(false, std::memory_order_release);
  }
}

void raise_deferred_error() {
  Deferred& errors = deferred();
  std::exception_ptr first;
  size_t more = 0;
  {
    std::lock_guard<std::mutex> lock(errors.mutex);
    first = std::exchange(errors.first, nullptr);
    more = std::exchange(errors.more, 0);
    deferred_error_pending.store(false, std::memory_order_release);
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
