// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <mupti.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// MUPTI's activity records, from start to stop. One profile at a time, as in torch's profiler.

namespace musa_runtime {

// The two stacks of correlation ids that are used here.
constexpr MUpti_ExternalCorrelationKind kOperationIds = MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
constexpr MUpti_ExternalCorrelationKind kAnnotationIds = MUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;

struct ActivityRecords {
  struct Buffer {
    std::unique_ptr<uint8_t, void (*)(uint8_t*)> data;
    size_t valid_bytes;
  };
  std::vector<Buffer> buffers;

  // Adds failures while reading the records to `errors`.
  void for_each(const std::function<void(const MUpti_Activity&)>& visit, std::vector<std::string>& errors) const;
};

// Failures of MUPTI are collected in `errors`: they lose records, but must not end the profiled program.
void start_activity_records(const std::vector<MUpti_ActivityKind>& kinds, std::vector<std::string>& errors);
void disable_activity_records(const std::vector<MUpti_ActivityKind>& kinds, std::vector<std::string>& errors);
ActivityRecords stop_activity_records(const std::vector<MUpti_ActivityKind>& kinds, std::vector<std::string>& errors);

// Adds "what failed: MUPTI_ERROR_..." if `result` is a failure.
void note_failure(MUptiResult result, const std::string& what, std::vector<std::string>& errors);

} // namespace musa_runtime
