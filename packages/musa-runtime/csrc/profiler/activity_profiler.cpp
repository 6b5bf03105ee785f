// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// The musa device in torch's profiler (kineto): the export of libmusa_profiler.so.

#include <profiler/activity_rows.h>
#include <profiler/library.h>

#include <ATen/Context.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/util/Exception.h>
#include <registry/op_registry.h>

#include <pthread.h>

#include <mutex>

namespace musa_runtime {
namespace {

using libkineto::ActivityType;

// Maps MUPTI's thread ids to torch's. A thread is added when it runs its first operator under a profiler.
class Threads {
 public:
  void note_this_thread() {
    thread_local bool noted = false;
    if (!noted) {
      noted = true;
      std::lock_guard<std::mutex> lock(mutex_);
      ids_[static_cast<uint32_t>(pthread_self())] = libkineto::systemThreadId();
    }
  }
  std::unordered_map<uint32_t, int32_t> snapshot() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ids_;
  }

 private:
  std::mutex mutex_; // guards ids_
  std::unordered_map<uint32_t, int32_t> ids_;
};

Threads& threads() {
  static Threads& instance = *new Threads();
  return instance;
}

// torch waits for the current device before it stops a profiler; pending work on the others would not be recorded.
void wait_for_devices(std::vector<std::string>& errors) {
  for (c10::DeviceIndex device = 0; device < c10::musa::device_count(); ++device) {
    if (!at::globalContext().getAcceleratorHooksInterface().hasPrimaryContext(device)) {
      continue;
    }
    try {
      const c10::musa::MUSAGuard guard(device);
      c10::musa::device_synchronize();
    } catch (const c10::Error& error) {
      errors.push_back(error.what_without_backtrace());
    }
  }
}

void name_kernels(std::vector<TracedKernel>& kernels) {
  const auto names = OpRegistry::get().names_by_counter();
  for (TracedKernel& kernel : kernels) {
    if (const auto name = names.find(kernel.counter); name != names.end()) {
      kernel.name = name->second;
    }
  }
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(const std::set<ActivityType>& types) : types_(types) {
    // Calls are always recorded, whether shown or not: they connect work to operators.
    kinds_ = {
        MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, MUPTI_ACTIVITY_KIND_SYNCHRONIZATION, MUPTI_ACTIVITY_KIND_RUNTIME};
    const auto add = [this](ActivityType type, std::initializer_list<MUpti_ActivityKind> kinds) {
      if (types_.count(type) != 0) {
        kinds_.insert(kinds_.end(), kinds);
      }
    };
    add(ActivityType::CONCURRENT_KERNEL, {MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    add(ActivityType::GPU_MEMCPY, {MUPTI_ACTIVITY_KIND_MEMCPY, MUPTI_ACTIVITY_KIND_MEMCPY2});
    add(ActivityType::GPU_MEMSET, {MUPTI_ACTIVITY_KIND_MEMSET});
    add(ActivityType::PRIVATEUSE1_DRIVER, {MUPTI_ACTIVITY_KIND_DRIVER});
    status_ = libkineto::TraceStatus::WARMUP;
  }

  ~Session() override {
    if (status_ == libkineto::TraceStatus::RECORDING) {
      stop();
    }
  }

  void start() override {
    threads().note_this_thread();
    start_activity_records(kinds_, errors_);
    start_kernel_tracing();
    if (!errors_.empty()) {
      TORCH_WARN("The profile of the musa device will be incomplete: ", c10::Join("; ", errors_));
    }
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    if (status_ != libkineto::TraceStatus::RECORDING) {
      return;
    }
    status_ = libkineto::TraceStatus::PROCESSING;
    // The waits below are not the program's: no more calls are recorded.
    disable_activity_records(
        {MUPTI_ACTIVITY_KIND_RUNTIME, MUPTI_ACTIVITY_KIND_DRIVER, MUPTI_ACTIVITY_KIND_SYNCHRONIZATION}, errors_);
    wait_for_devices(errors_);
    kernels_ = stop_kernel_tracing();
    name_kernels(kernels_);
    records_ = stop_activity_records(kinds_, errors_);
  }

  std::vector<std::string> errors() override { return errors_; }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, 0);
  }

  void processTrace(
      libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, int64_t start_time,
      int64_t /*end_time*/) override {
    const auto ids = threads().snapshot();
    std::unordered_map<uint64_t, uint64_t> outer_ranges;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      outer_ranges.swap(outer_ranges_);
    }
    ActivityRows rows(types_, std::move(linked), ids, outer_ranges);
    rows.add(kernels_);
    rows.add(records_, errors_);
    rows.log(logger, start_time);
    buffer_ = rows.take_buffer();
    kernels_.clear();
    records_.buffers.clear();
  }

  // Devices and streams are named row by row, in the order of the trace.
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

  void pushCorrelationId(uint64_t id) override {
    threads().note_this_thread();
    push(CorrelationKind::Operation, kOperationIds, id);
  }
  void popCorrelationId() override { pop(CorrelationKind::Operation, kOperationIds); }
  void pushUserCorrelationId(uint64_t id) override {
    threads().note_this_thread();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      outer_ranges_[id] = innermost_correlation(CorrelationKind::Annotation);
    }
    push(CorrelationKind::Annotation, kAnnotationIds, id);
  }
  void popUserCorrelationId() override { pop(CorrelationKind::Annotation, kAnnotationIds); }

 private:
  // Failures here are not reported: every thread calls this, for every operator, and only a link between rows is lost.
  static void push(CorrelationKind kind, MUpti_ExternalCorrelationKind external, uint64_t id) {
    push_correlation(kind, id);
    (void)muptiActivityPushExternalCorrelationId(external, id);
  }
  static void pop(CorrelationKind kind, MUpti_ExternalCorrelationKind external) {
    pop_correlation(kind);
    uint64_t id = 0;
    (void)muptiActivityPopExternalCorrelationId(external, &id);
  }

  std::set<ActivityType> types_;
  std::vector<MUpti_ActivityKind> kinds_;
  std::vector<std::string> errors_;
  std::vector<TracedKernel> kernels_;
  ActivityRecords records_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
  std::mutex mutex_; // guards outer_ranges_: ranges open on any thread
  std::unordered_map<uint64_t, uint64_t> outer_ranges_;
};

class ActivityProfiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  // Empty because torch queries the registered profiler, which comes before this one.
  const std::set<ActivityType>& availableActivities() const override {
    static const std::set<ActivityType> none;
    return none;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config& /*config*/) override {
    return std::make_unique<Session>(types);
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t /*ts_ms*/, int64_t /*duration_ms*/, const std::set<ActivityType>& types,
      const libkineto::Config& config) override {
    return configure(types, config);
  }

 private:
  std::string name_{"musa"};
};

} // namespace
} // namespace musa_runtime

extern "C" C10_EXPORT libkineto::IActivityProfiler* musa_runtime_create_profiler() {
  return new musa_runtime::ActivityProfiler();
}
