// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <profiler/activity_rows.h>

#include <profiler/callback_names.h>

#include <c10/util/Type.h>
#include <output_base.h>

#include <algorithm>
#include <string_view>

namespace musa_runtime {
namespace {

using libkineto::ActivityType;

// The stream of a record that applies to all streams.
constexpr uint32_t kAllStreams = static_cast<uint32_t>(-1);

// Calls that neither enqueue work on a device nor wait for it; every operator makes some, and they would hide the others.
bool is_noise(const std::string& call) {
  static const std::set<std::string> names{"musaEventQuery",           "musaGetDevice",
                                           "musaGetLastError",         "musaPeekAtLastError",
                                           "musaPointerGetAttributes", "musaSetDevice",
                                           "musaStreamGetId",          "musaStreamIsCapturing",
                                           "musaStreamQuery",          "musaThreadExchangeStreamCaptureMode"};
  return names.count(call) != 0;
}

const char* direction(uint8_t kind) {
  switch (kind) {
    case MUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "HtoD";
    case MUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "DtoH";
    case MUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "DtoD";
    case MUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "HtoH";
    case MUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "PtoP";
    default: return "unknown direction";
  }
}

const char* memory(uint16_t kind) {
  switch (kind) {
    case MUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return "Pageable";
    case MUPTI_ACTIVITY_MEMORY_KIND_PINNED: return "Pinned";
    case MUPTI_ACTIVITY_MEMORY_KIND_DEVICE: return "Device";
    case MUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return "Array";
    case MUPTI_ACTIVITY_MEMORY_KIND_MANAGED: return "Managed";
    default: return "Unknown";
  }
}

const char* synchronization(MUpti_ActivitySynchronizationType type) {
  switch (type) {
    case MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: return "host waits for an event";
    case MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT: return "stream waits for an event";
    case MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: return "host waits for a stream";
    case MUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: return "host waits for a device";
    default: return "unknown";
  }
}

void set_bandwidth(libkineto::GenericTraceActivity& row, uint64_t bytes) {
  row.addMetadata("bytes", bytes);
  if (row.endTime > row.startTime) {
    row.addMetadata("memory bandwidth (GB/s)", static_cast<double>(bytes) / static_cast<double>(row.duration()));
  }
}

// The kernel of "aten::add.Tensor" is named "native::add.Tensor". With the operator's own name, tables would show two
// different things under one name.
std::string kernel_name(const std::string& op) {
  const size_t colons = op.find("::");
  return "native::" + (colons == std::string::npos ? op : op.substr(colons + 2));
}

} // namespace

ActivityRows::ActivityRows(
    std::set<ActivityType> types, libkineto::getLinkedActivityCallback linked,
    const std::unordered_map<uint32_t, int32_t>& threads, const std::unordered_map<uint64_t, uint64_t>& outer_ranges)
    : types_(std::move(types)),
      linked_(std::move(linked)),
      threads_(threads),
      outer_ranges_(outer_ranges),
      buffer_(std::make_unique<libkineto::CpuTraceBuffer>()) {
  buffer_->span = libkineto::TraceSpan(0, 0, "musa");
}

void ActivityRows::add(const ActivityRecords& records, std::vector<std::string>& errors) {
  // The records that connect rows are separate, in any order.
  records.for_each(
      [this](const MUpti_Activity& record) {
        if (record.kind == MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
          note_external(reinterpret_cast<const MUpti_ActivityExternalCorrelation&>(record));
        } else if (record.kind == MUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
          note_synchronization(reinterpret_cast<const MUpti_ActivitySynchronization&>(record));
        }
      },
      errors);
  std::vector<const MUpti_ActivityAPI*> calls;
  records.for_each(
      [this, &calls](const MUpti_Activity& record) {
        if (record.kind == MUPTI_ACTIVITY_KIND_RUNTIME || record.kind == MUPTI_ACTIVITY_KIND_DRIVER) {
          calls.push_back(reinterpret_cast<const MUpti_ActivityAPI*>(&record));
        } else {
          add_record(record);
        }
      },
      errors);
  for (const MUpti_ActivityAPI* call : calls) { // last: now it is known which of them enqueued work
    add_call(
        *call,
        call->kind == MUPTI_ACTIVITY_KIND_RUNTIME ? ActivityType::PRIVATEUSE1_RUNTIME
                                                  : ActivityType::PRIVATEUSE1_DRIVER);
  }
}

void ActivityRows::note_external(const MUpti_ActivityExternalCorrelation& record) {
  if (record.externalKind == kOperationIds) {
    operations_[record.correlationId] = record.externalId;
  } else if (record.externalKind == kAnnotationIds) {
    annotations_[record.correlationId] = record.externalId;
  }
}

void ActivityRows::note_synchronization(const MUpti_ActivitySynchronization& record) {
  std::string text = synchronization(record.type);
  if (record.streamId != kAllStreams) {
    text += ", stream " + std::to_string(record.streamId);
  }
  synchronizations_[record.correlationId] = std::move(text);
}

void ActivityRows::add_record(const MUpti_Activity& record) {
  switch (record.kind) {
    case MUPTI_ACTIVITY_KIND_MEMCPY: add_copy(reinterpret_cast<const MUpti_ActivityMemcpy&>(record)); break;
    case MUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& copy = reinterpret_cast<const MUpti_ActivityMemcpy2&>(record);
      Row& row = add_copy(copy);
      row.addMetadata("from device", copy.srcDeviceId);
      row.addMetadata("to device", copy.dstDeviceId);
      break;
    }
    case MUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = reinterpret_cast<const MUpti_ActivityMemset&>(record);
      Row& row = add_device_row(
          ActivityType::GPU_MEMSET, std::string("Memset (") + memory(fill.memoryKind) + ")",
          static_cast<int64_t>(fill.start), static_cast<int64_t>(fill.end), fill.deviceId, fill.streamId);
      set_bandwidth(row, fill.bytes);
      correlate(row, fill.correlationId);
      break;
    }
    case MUPTI_ACTIVITY_KIND_KERNEL:
    case MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const MUpti_ActivityKernel4&>(record);
      Row& row = add_device_row(
          ActivityType::CONCURRENT_KERNEL, readable_name(kernel.name), static_cast<int64_t>(kernel.start),
          static_cast<int64_t>(kernel.end), kernel.deviceId, kernel.streamId);
      row.addMetadata("grid", fmt::format("[{}, {}, {}]", kernel.gridX, kernel.gridY, kernel.gridZ));
      row.addMetadata("block", fmt::format("[{}, {}, {}]", kernel.blockX, kernel.blockY, kernel.blockZ));
      row.addMetadata("registers per thread", kernel.registersPerThread);
      row.addMetadata("shared memory", kernel.staticSharedMemory + kernel.dynamicSharedMemory);
      correlate(row, kernel.correlationId);
      break;
    }
    default: break;
  }
}

// The SDK's name may be the one that the compiler gave. Demangling takes microseconds, and a trace has few names.
const std::string& ActivityRows::readable_name(const char* name) {
  const auto [found, first] = kernel_names_.try_emplace(name);
  if (first) {
    found->second = std::string_view(name).starts_with("_Z") ? c10::demangle(name) : name;
  }
  return found->second;
}

template <class Record>
ActivityRows::Row& ActivityRows::add_copy(const Record& record) {
  const std::string name = std::string("Memcpy ") + direction(record.copyKind) + " (" + memory(record.srcKind) +
      " -> " + memory(record.dstKind) + ")";
  Row& row = add_device_row(
      ActivityType::GPU_MEMCPY, name, static_cast<int64_t>(record.start), static_cast<int64_t>(record.end),
      record.deviceId, record.streamId);
  set_bandwidth(row, record.bytes);
  correlate(row, record.correlationId);
  return row;
}

ActivityRows::Row& ActivityRows::add_device_row(
    ActivityType type, const std::string& name, int64_t start, int64_t end, uint32_t device, uint64_t stream) {
  buffer_->emplace_activity(buffer_->span, type, name);
  Row& row = *buffer_->activities.back();
  row.startTime = start;
  row.endTime = end;
  row.device = static_cast<int32_t>(device);
  row.resource = static_cast<int32_t>(stream);
  row.addMetadata("device", device);
  row.addMetadata("stream", stream);
  streams_[row.device].insert(row.resource);
  return row;
}

void ActivityRows::correlate(Row& row, uint32_t correlation) {
  if (correlation == 0) {
    return; // enqueued before the profile began
  }
  row.id = static_cast<int32_t>(correlation);
  row.flow.id = correlation;
  row.flow.type = libkineto::kLinkAsyncCpuGpu;
  row.flow.start = 0;
  row.addMetadata("correlation", correlation);
  enqueuing_.insert(correlation);
  if (const auto operation = operations_.find(correlation); operation != operations_.end()) {
    link(row, operation->second);
  }
  if (const auto annotation = annotations_.find(correlation); annotation != annotations_.end()) {
    annotate(row, annotation->second);
  }
}

void ActivityRows::link(Row& row, uint64_t operation) {
  row.linked = operation == 0 ? nullptr : linked_(static_cast<int32_t>(operation));
}

void ActivityRows::annotate(const Row& row, uint64_t annotation) {
  while (annotation != 0) {
    const auto [span, first] =
        spans_.try_emplace({annotation, row.device, row.resource}, Span{row.startTime, row.endTime});
    if (!first) {
      span->second.start = std::min(span->second.start, row.startTime);
      span->second.end = std::max(span->second.end, row.endTime);
    }
    const auto outer = outer_ranges_.find(annotation);
    annotation = outer == outer_ranges_.end() ? 0 : outer->second;
  }
}

void ActivityRows::add_call(const MUpti_ActivityAPI& record, ActivityType type) {
  const std::string name = callback_name(record.kind == MUPTI_ACTIVITY_KIND_DRIVER, record.cbid);
  const bool enqueues = enqueuing_.count(record.correlationId) != 0;
  if (types_.count(type) == 0 || (is_noise(name) && !enqueues)) {
    return;
  }
  buffer_->emplace_activity(buffer_->span, type, name);
  Row& row = *buffer_->activities.back();
  row.startTime = static_cast<int64_t>(record.start);
  row.endTime = static_cast<int64_t>(record.end);
  const auto thread = threads_.find(record.threadId);
  row.device = libkineto::processId();
  row.resource = thread != threads_.end() ? thread->second : static_cast<int32_t>(record.threadId);
  row.threadId = row.resource;
  row.addMetadata("cbid", record.cbid);
  row.addMetadata("correlation", record.correlationId);
  if (record.returnValue != 0) {
    row.addMetadata("error", record.returnValue);
  }
  if (const auto wait = synchronizations_.find(record.correlationId); wait != synchronizations_.end()) {
    row.addMetadataQuoted("synchronization", wait->second);
  }
  if (const auto operation = operations_.find(record.correlationId); operation != operations_.end()) {
    link(row, operation->second);
  }
  // torch interprets the id of a row without an operator as an operator's id. 0 belongs to no operator.
  row.id = row.linked == nullptr ? 0 : static_cast<int32_t>(record.correlationId);
  if (enqueues) {
    row.flow.id = record.correlationId;
    row.flow.type = libkineto::kLinkAsyncCpuGpu;
    row.flow.start = 1;
  }
}

void ActivityRows::add(const std::vector<TracedKernel>& kernels) {
  if (types_.count(ActivityType::CONCURRENT_KERNEL) == 0) {
    return;
  }
  for (const TracedKernel& kernel : kernels) {
    const libkineto::ITraceActivity* operation =
        kernel.operation == 0 ? nullptr : linked_(static_cast<int32_t>(kernel.operation));
    const std::string name = !kernel.name.empty() ? kernel.name
        : operation != nullptr                    ? operation->name()
                                                  : std::string("kernel");
    Row& row = add_device_row(
        ActivityType::CONCURRENT_KERNEL, kernel_name(name), kernel.start, kernel.end,
        static_cast<uint32_t>(kernel.device), kernel.stream);
    row.linked = operation;
    annotate(row, kernel.annotation);
  }
}

void ActivityRows::add_annotations() {
  for (const auto& [place, span] : spans_) {
    const auto& [annotation, device, stream] = place;
    const libkineto::ITraceActivity* range = linked_(static_cast<int32_t>(annotation));
    if (range == nullptr) {
      continue; // opened before the profile began
    }
    buffer_->emplace_activity(buffer_->span, ActivityType::GPU_USER_ANNOTATION, range->name());
    Row& row = *buffer_->activities.back();
    row.startTime = span.start;
    row.endTime = span.end;
    row.device = device;
    row.resource = stream;
    row.id = static_cast<int32_t>(annotation);
  }
}

void ActivityRows::log(libkineto::ActivityLogger& logger, int64_t time) {
  if (types_.count(ActivityType::GPU_USER_ANNOTATION) != 0) {
    add_annotations();
  }
  for (const auto& [device, streams] : streams_) {
    logger.handleDeviceInfo(
        {device, device + libkineto::kExceedMaxPid, "musa:" + std::to_string(device), "MUSA " + std::to_string(device)},
        time);
    for (const int32_t stream : streams) {
      logger.handleResourceInfo({stream, stream, device, "stream " + std::to_string(stream)}, time);
    }
  }
  for (const auto& row : buffer_->activities) {
    row->log(logger);
  }
}

} // namespace musa_runtime
