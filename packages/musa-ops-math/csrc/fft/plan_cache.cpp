// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <fft/plan_cache.h>

#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/graph_capture.h>

#include <deque>

namespace musa_ops_math::fft {

PlanCache& PlanCache::of(c10::DeviceIndex device) {
  // Not destroyed: at the exit of the process, muFFT may have ended already.
  static auto& caches = *[] {
    auto* const made = new std::deque<PlanCache>();
    for (c10::DeviceIndex index = 0; index < c10::musa::device_count(); ++index) {
      made->emplace_back(index);
    }
    return made;
  }();
  return caches.at(static_cast<size_t>(device));
}

Plan& PlanCache::plan(const PlanKey& key, bool capturing) {
  if (const auto kept = captured_.find(key); kept != captured_.end()) {
    return *kept->second;
  }
  const auto found = index_.find(key);
  if (capturing) {
    std::unique_ptr<Plan> plan;
    if (found != index_.end()) {
      plan = std::move(found->second->second);
      recent_.erase(found->second);
      index_.erase(found);
    } else {
      plan = std::make_unique<Plan>(key);
    }
    return *captured_.emplace(key, std::move(plan)).first->second;
  }
  if (found != index_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return *found->second->second;
  }
  recent_.emplace_front(key, std::make_unique<Plan>(key));
  index_.emplace(key, recent_.begin());
  return *recent_.front().second;
}

void PlanCache::trim(size_t size) {
  if (recent_.size() <= size) {
    return;
  }
  // No public source says that muFFT waits for the transforms of a plan that it destroys.
  c10::musa::device_synchronize();
  while (recent_.size() > size) {
    index_.erase(recent_.back().first);
    recent_.pop_back();
  }
}

void PlanCache::run(const PlanKey& key, void* in, void* out, bool forward) {
  const std::lock_guard lock(mutex_);
  const bool capturing = musa_runtime::capturing();
  Plan& found = plan(key, capturing);
  const size_t bytes = found.workspace_bytes();
  const c10::DataPtr workspace = bytes != 0 ? c10::musa::MUSACachingAllocator::get()->allocate(bytes) : c10::DataPtr();
  found.run(in, out, forward, workspace.get(), c10::musa::getCurrentMUSAStream().stream());
  if (musa_runtime::captures_running.load(std::memory_order_relaxed) == 0) {
    trim(max_size_); // waits for the device, which would end a capture; a later call trims
  }
}

size_t PlanCache::size() const {
  const std::lock_guard lock(mutex_);
  return recent_.size();
}

size_t PlanCache::max_size() const {
  const std::lock_guard lock(mutex_);
  return max_size_;
}

void PlanCache::set_max_size(size_t size) {
  const std::lock_guard lock(mutex_);
  max_size_ = size;
  trim(size);
}

void PlanCache::clear() {
  const std::lock_guard lock(mutex_);
  trim(0);
}

} // namespace musa_ops_math::fft
