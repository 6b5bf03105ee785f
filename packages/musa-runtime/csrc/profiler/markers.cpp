// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <profiler/markers.h>

#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace musa_runtime::markers {
namespace {

using Range = std::unique_ptr<at::RecordFunction>;

Range open_range(const std::string& message, bool any_thread) {
  auto range = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  if (range->isActive()) {
    if (any_thread) {
      range->_setAsync();
    }
    range->before(message);
  }
  return range;
}

thread_local std::vector<Range> this_threads_ranges;

struct OpenRanges {
  std::mutex mutex; // guards the members below; no range is closed under it
  std::unordered_map<uint64_t, Range> ranges;
  uint64_t next = 1;
};

OpenRanges& open_ranges() {
  static OpenRanges& instance = *new OpenRanges();
  return instance;
}

} // namespace

int64_t range_push(const std::string& message) {
  this_threads_ranges.push_back(open_range(message, /*any_thread=*/false));
  return static_cast<int64_t>(this_threads_ranges.size()) - 1;
}

int64_t range_pop() {
  TORCH_CHECK(
      !this_threads_ranges.empty(),
      "range_pop(): no range is open on this thread. Likely causes: a range_push() is missing, or ran on another thread. "
      "Fix: use the context manager range(), or range_start() and range_end() across threads.");
  this_threads_ranges.pop_back();
  return static_cast<int64_t>(this_threads_ranges.size());
}

uint64_t range_start(const std::string& message) {
  Range range = open_range(message, /*any_thread=*/true);
  OpenRanges& open = open_ranges();
  std::lock_guard<std::mutex> lock(open.mutex);
  open.ranges.emplace(open.next, std::move(range));
  return open.next++;
}

void range_end(uint64_t range) {
  Range ended;
  {
    OpenRanges& open = open_ranges();
    std::lock_guard<std::mutex> lock(open.mutex);
    const auto found = open.ranges.find(range);
    TORCH_CHECK_VALUE(
        found != open.ranges.end(), "range_end(", range,
        "): no such range is open. Fix: pass what range_start() returned, once.");
    ended = std::move(found->second);
    open.ranges.erase(found);
  }
}

void mark(const std::string& message) { open_range(message, /*any_thread=*/false); }

} // namespace musa_runtime::markers
