// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "launched.h"

#include <iterator>
#include <utility>

namespace c10d::mccl {

void KeptTensors::add(const std::vector<at::Tensor>& tensors) {
  const std::lock_guard lock(mutex_);
  tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
}

void KeptTensors::take(KeptTensors& other) {
  const std::scoped_lock lock(mutex_, other.mutex_); // both locks, so that the tensors are always in one of the two
  tensors_.insert(
      tensors_.end(), std::make_move_iterator(other.tensors_.begin()), std::make_move_iterator(other.tensors_.end()));
  other.tensors_.clear();
}

void KeptTensors::clear() {
  std::vector<at::Tensor> freed; // freed after the lock is released, because freeing a tensor may take the GIL
  const std::lock_guard lock(mutex_);
  freed.swap(tensors_);
}

bool KeptTensors::empty() const {
  const std::lock_guard lock(mutex_);
  return tensors_.empty();
}

Launched::Launched(bool timing, c10::musa::MUSAStream on)
    : stream(on), end(std::make_shared<c10::musa::MUSAEvent>(timing ? musaEventDefault : musaEventDisableTiming)) {
  if (timing) {
    start.emplace(musaEventDefault);
  }
}

bool Launched::started() const {
  return on_stream.load() && (captured || (start.has_value() && start->query()) || end->query());
}

bool Launched::finished() const { return on_stream.load() && (captured || end->query()); }

std::chrono::milliseconds Launched::age() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - issued);
}

std::optional<float> Launched::milliseconds() const {
  return start.has_value() && !captured && finished() ? std::optional(start->elapsed_time(*end)) : std::nullopt;
}

void Launched::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (failure_ == nullptr) {
    failure_ = std::move(failure);
  }
}

std::exception_ptr Launched::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

} // namespace c10d::mccl
