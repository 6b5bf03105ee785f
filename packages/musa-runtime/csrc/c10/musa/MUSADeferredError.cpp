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
  std::string first;
  size_t more = 0;
};

Deferred& deferred() {
  static Deferred& instance = *new Deferred();
  return instance;
}

} // namespace

std::atomic<bool> deferred_error_pending{false};

void defer_error(std::string message) {
  Deferred& errors = deferred();
  std::lock_guard<std::mutex> lock(errors.mutex);
  if (errors.first.empty()) {
    errors.first = std::move(message);
  } else {
    ++errors.more; // what follows the first is mostly its consequence
  }
  deferred_error_pending.store(true, std::memory_order_release);
}

void raise_deferred_error() {
  Deferred& errors = deferred();
  std::string text;
  size_t more = 0;
  {
    std::lock_guard<std::mutex> lock(errors.mutex);
    text = std::exchange(errors.first, {});
    more = std::exchange(errors.more, 0);
    deferred_error_pending.store(false, std::memory_order_release);
  }
  TORCH_CHECK(text.empty(), text, more == 0 ? "" : c10::str("\n(", more, " more such errors since.)"));
}

} // namespace c10::musa
