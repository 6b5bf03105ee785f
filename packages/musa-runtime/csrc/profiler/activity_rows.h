// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <profiler/activity_collector.h>

#include <libkineto.h>
#include <musa_runtime/kernel_trace.h>

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

// Converts activity records to the rows of a trace: kernels, copies and fills on the streams of their devices, calls on the
// threads that made them, each linked to its operator of torch.

namespace musa_runtime {

class ActivityRows {
 public:
  // linked: torch's activity of a correlation id, null if there is none. threads: torch's thread ids by MUPTI's.
  // outer_ranges: the enclosing range of each range of the user.
  ActivityRows(
      std::set<libkineto::ActivityType> types, libkineto::getLinkedActivityCallback linked,
      const std::unordered_map<uint32_t, int32_t>& threads, const std::unordered_map<uint64_t, uint64_t>& outer_ranges);

  void add(const ActivityRecords& records, std::vector<std::string>& errors);
  void add(const std::vector<TracedKernel>& kernels);
  // Passes all rows to the logger, with the names of devices and streams. The trace buffer owns the rows.
  void log(libkineto::ActivityLogger& logger, int64_t time);

  std::unique_ptr<libkineto::CpuTraceBuffer> take_buffer() { return std::move(buffer_); }

 private:
  using Row = libkineto::GenericTraceActivity;

  void note_external(const MUpti_ActivityExternalCorrelation& record);
  void note_synchronization(const MUpti_ActivitySynchronization& record);
  void add_record(const MUpti_Activity& record);
  void add_call(const MUpti_ActivityAPI& record, libkineto::ActivityType type);
  const std::string& readable_name(const char* name);
  template <class Record>
  Row& add_copy(const Record& record);
  Row& add_device_row(
      libkineto::ActivityType type, const std::string& name, int64_t start, int64_t end, uint32_t device,
      uint64_t stream);
  // Links a row to the call that enqueued it, and so to the operator and the ranges around that call.
  void correlate(Row& row, uint32_t correlation);
  void link(Row& row, uint64_t operation);
  // Extends the range's span on the device, and those of the ranges around it.
  void annotate(const Row& row, uint64_t annotation);
  void add_annotations();

  std::set<libkineto::ActivityType> types_;
  libkineto::getLinkedActivityCallback linked_;
  const std::unordered_map<uint32_t, int32_t>& threads_;
  const std::unordered_map<uint64_t, uint64_t>& outer_ranges_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;

  std::unordered_map<uint32_t, uint64_t> operations_;  // by the call's correlation id
  std::unordered_map<uint32_t, uint64_t> annotations_;
  std::unordered_map<uint32_t, std::string> synchronizations_;
  std::unordered_map<const char*, std::string> kernel_names_; // by the SDK's name, which stays valid
  std::set<uint32_t> enqueuing_; // calls that enqueued work on a device
  std::map<int32_t, std::set<int32_t>> streams_; // by device
  // The device's work in one range of the user, on one stream: its first start and its last end.
  struct Span {
    int64_t start;
    int64_t end;
  };
  std::map<std::tuple<uint64_t, int32_t, int32_t>, Span> spans_; // by range, device, stream
};

} // namespace musa_runtime
