// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "launched.h"

#include <iterator>
#include <utility>

#include "events.h"

namespace c10d::mccl {
namespace {

std::shared_ptr<c10::musa::MUSAEvent> event_for(const c10::musa::MUSAStream& stream, bool captured, bool timing) {
  return captured ? own_event(timing) : pooled_event(stream.device_index(), timing);
}

} // namespace

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

Launched::Launched(bool timing, c10::musa::MUSAStream on, bool is_captured)
    : stream(on),
      captured(is_captured),
      start(timing ? event_for(on, captured, timing) : nullptr),
      end(event_for(on, captured, timing)) {}

bool Launched::started() const {
  return on_stream.load() && (captured || (start != nullptr && start->query()) || end->query());
}

bool Launched::finished() const { return on_stream.load() && (captured || end->query()); }

std::chrono::milliseconds Launched::age() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - issued);
}

std::optional<float> Launched::milliseconds() const {
  return start != nullptr && !captured && finished() ? std::optional(start->elapsed_time(*end)) : std::nullopt;
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
