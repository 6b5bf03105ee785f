// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/allocator/MUSAAllocatorHooks.h>

#include <atomic>

namespace c10::musa::MUSACachingAllocator {
namespace {

std::atomic<bool (*)()> reclaimer_hook{nullptr};
std::atomic<void (*)(const c10::DataPtr&, MUSAStream)> recorder_hook{nullptr};

} // namespace

void set_reclaimer(bool (*reclaimer)()) { reclaimer_hook.store(reclaimer); }

bool reclaim() {
  const auto reclaimer = reclaimer_hook.load();
  return reclaimer != nullptr && reclaimer();
}

void set_stream_recorder_of_foreign(void (*recorder)(const c10::DataPtr& data, MUSAStream stream)) {
  recorder_hook.store(recorder);
}

void record_stream_of_foreign(const c10::DataPtr& data, MUSAStream stream) {
  if (const auto recorder = recorder_hook.load()) {
    recorder(data, stream);
  }
}

} // namespace c10::musa::MUSACachingAllocator
