// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <profiler/activity_collector.h>

#include <cstdlib>
#include <mutex>

namespace musa_runtime {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

struct Filled {
  std::mutex mutex; // guards buffers; a leaf lock, taken inside MUPTI's callbacks
  std::vector<ActivityRecords::Buffer> buffers;
};

// Never destroyed: MUPTI may return a buffer while the process ends.
Filled& filled() {
  static Filled& instance = *new Filled();
  return instance;
}

void release(uint8_t* data) { std::free(data); }

void request_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *most_records = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
}

void complete_buffer(MUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/, size_t valid_bytes) {
  ActivityRecords::Buffer owned{{buffer, &release}, valid_bytes};
  if (valid_bytes != 0) {
    std::lock_guard<std::mutex> lock(filled().mutex);
    filled().buffers.push_back(std::move(owned));
  }
}

} // namespace

void note_failure(MUptiResult result, const std::string& what, std::vector<std::string>& errors) {
  if (result != MUPTI_SUCCESS) {
    const char* text = nullptr;
    const bool named = muptiGetResultString(result, &text) == MUPTI_SUCCESS && text != nullptr;
    errors.push_back(what + ": " + (named ? text : "error " + std::to_string(static_cast<int>(result))));
  }
}

void start_activity_records(const std::vector<MUpti_ActivityKind>& kinds, std::vector<std::string>& errors) {
  {
    std::lock_guard<std::mutex> lock(filled().mutex);
    filled().buffers.clear();
  }
  note_failure(
      muptiActivityRegisterCallbacks(&request_buffer, &complete_buffer), "muptiActivityRegisterCallbacks", errors);
  size_t ignored = 0; // from an earlier profile
  note_failure(muptiActivityGetNumDroppedRecords(nullptr, 0, &ignored), "muptiActivityGetNumDroppedRecords", errors);
  for (const MUpti_ActivityKind kind : kinds) {
    note_failure(
        muptiActivityEnable(kind), "muptiActivityEnable(" + std::to_string(static_cast<int>(kind)) + ")", errors);
  }
}

void disable_activity_records(const std::vector<MUpti_ActivityKind>& kinds, std::vector<std::string>& errors) {
  for (const MUpti_ActivityKind kind : kinds) {
    note_failure(
        muptiActivityDisable(kind), "muptiActivityDisable(" + std::to_string(static_cast<int>(kind)) + ")", errors);
  }
}

ActivityRecords stop_activity_records(const std::vector<MUpti_ActivityKind>& kinds, std::vector<std::string>& errors) {
  disable_activity_records(kinds, errors);
  note_failure(muptiActivityFlushAll(MUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "muptiActivityFlushAll", errors);
  size_t dropped = 0;
  note_failure(muptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), "muptiActivityGetNumDroppedRecords", errors);
  if (dropped != 0) {
    errors.push_back(
        std::to_string(dropped) + " activity records were dropped: no memory for more. Fix: profile fewer steps");
  }
  ActivityRecords records;
  std::lock_guard<std::mutex> lock(filled().mutex);
  records.buffers.swap(filled().buffers);
  return records;
}

void ActivityRecords::for_each(
    const std::function<void(const MUpti_Activity&)>& visit, std::vector<std::string>& errors) const {
  for (const Buffer& buffer : buffers) {
    MUpti_Activity* record = nullptr;
    MUptiResult result = MUPTI_SUCCESS;
    while ((result = muptiActivityGetNextRecord(buffer.data.get(), buffer.valid_bytes, &record)) == MUPTI_SUCCESS) {
      visit(*record);
    }
    if (result != MUPTI_ERROR_MAX_LIMIT_REACHED) { // the end of the buffer
      note_failure(result, "muptiActivityGetNextRecord", errors);
    }
  }
}

} // namespace musa_runtime
