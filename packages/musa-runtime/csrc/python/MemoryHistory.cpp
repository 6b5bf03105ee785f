// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// The allocator's history for Python. Stacks are gathered as torch::CapturedTraceback and converted, at the snapshot, to
// the dicts that torch's memory_viz reads. Also the statistics that torch.accelerator's interface lacks.

#include <python/bindings.h>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/record_function.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSACompat.h>
#include <c10/musa/MUSAFunctions.h>

#include <pybind11/stl.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include <atomic>
#include <optional>

namespace py = pybind11;
namespace allocator = c10::musa::MUSACachingAllocator;
using c10::CachingDeviceAllocator::AnnotationEntry;
using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::SegmentInfo;
using c10::CachingDeviceAllocator::TraceEntry;
using torch::CapturedTraceback;

namespace musa_runtime::python {
namespace {

// ---- recording

// Memory is freed until the end of the process, after the interpreter has been destroyed.
bool interpreter_lives() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() != 0 && Py_IsFinalizing() == 0;
#else
  return Py_IsInitialized() != 0 && _Py_IsFinalizing() == 0;
#endif
}

std::shared_ptr<c10::GatheredContext> gather_python() {
  const bool python = interpreter_lives();
  return CapturedTraceback::gather(python, python, /*cpp=*/false);
}

std::shared_ptr<c10::GatheredContext> gather_python_and_cpp() {
  const bool python = interpreter_lives();
  return CapturedTraceback::gather(python, python, /*cpp=*/true);
}

void annotate(const char* stage, const at::RecordFunction& function) {
  allocator::recordAnnotation({{"name", function.name()}, {"stage", stage}});
}

// Records the ranges of torch.profiler.record_function in the history. Called with the GIL held.
void record_annotations(bool enabled) {
  static std::optional<at::CallbackHandle> handle;
  if (handle.has_value() && !enabled) {
    at::removeCallback(*handle);
    handle.reset();
  } else if (!handle.has_value() && enabled) {
    handle = at::addGlobalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
              annotate("START", function);
              return nullptr;
            },
            [](const at::RecordFunction& function, at::ObserverContext*) { annotate("END", function); })
            .scopes({at::RecordScope::USER_SCOPE}));
  }
}

RecordContext context_named(const std::optional<std::string>& name) {
  if (!name.has_value()) {
    return RecordContext::NEVER;
  }
  if (*name == "state") {
    return RecordContext::STATE;
  }
  return *name == "alloc" ? RecordContext::ALLOC : RecordContext::ALL;
}

// The arguments were checked in Python.
void record_memory_history(
    const std::optional<std::string>& enabled, const std::optional<std::string>& context, const std::string& stacks,
    size_t max_entries, bool clear_history, bool annotations, const std::vector<std::string>& skip_actions,
    DeviceArgument device) {
  allocator::recordHistory(
      enabled.has_value(), stacks == "all" ? &gather_python_and_cpp : &gather_python,
      enabled == "all" ? max_entries : 0, enabled.has_value() ? context_named(context) : RecordContext::NEVER,
      clear_history, skip_actions, device);
  record_annotations(enabled.has_value() && annotations);
}

// ---- stacks

// Collects stacks first, since torch symbolizes addresses far faster in one batch.
class Stacks {
 public:
  void add(const std::shared_ptr<c10::GatheredContext>& context) {
    if (context != nullptr && places_.emplace(context.get(), tracebacks_.size()).second) {
      tracebacks_.push_back(torch::getCapturedTracebackFromContext(context));
    }
  }

  void symbolize() {
    const torch::SymbolizedTracebacks symbolized = torch::symbolize(tracebacks_);
    std::vector<py::object> frames;
    frames.reserve(symbolized.all_frames.size());
    for (const auto& frame : symbolized.all_frames) {
      py::dict entry;
      entry["name"] = text(frame.funcname);
      entry["filename"] = text(frame.filename);
      entry["line"] = frame.lineno;
      frames.push_back(std::move(entry));
    }
    for (const auto& traceback : symbolized.tracebacks) {
      py::list list;
      for (const uint64_t index : traceback) {
        list.append(frames.at(index));
      }
      lists_.push_back(std::move(list));
    }
  }

  // Innermost frame first; empty if no stack was recorded. Entries share the dicts of their frames.
  py::list frames(const std::shared_ptr<c10::GatheredContext>& context) const {
    return context == nullptr ? py::list() : lists_.at(places_.at(context.get()));
  }

 private:
  // Names of C++ functions come from object files and need not be UTF-8.
  static py::object text(const std::string& value) {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace"));
  }

  std::unordered_map<const c10::GatheredContext*, size_t> places_;
  std::vector<CapturedTraceback*> tracebacks_;
  std::vector<py::list> lists_;
};

// ---- the snapshot

py::tuple as_tuple(const c10::MempoolId_t& id) { return py::make_tuple(id.first, id.second); }

const char* state_name(const BlockInfo& block) {
  if (block.allocated) {
    return "active_allocated";
  }
  return block.active ? "active_awaiting_free" : "inactive";
}

const char* action_name(TraceEntry::Action action) {
  switch (action) {
    case TraceEntry::ALLOC: return "alloc";
    case TraceEntry::FREE_REQUESTED: return "free_requested";
    case TraceEntry::FREE_COMPLETED: return "free_completed";
    case TraceEntry::SEGMENT_ALLOC: return "segment_alloc";
    case TraceEntry::SEGMENT_FREE: return "segment_free";
    case TraceEntry::SEGMENT_MAP: return "segment_map";
    case TraceEntry::SEGMENT_UNMAP: return "segment_unmap";
    case TraceEntry::SNAPSHOT: return "snapshot";
    case TraceEntry::OOM: return "oom";
  }
  TORCH_CHECK(false, "The action ", static_cast<int>(action), " of the allocator's history has no name.");
}

py::dict as_dict(const SegmentInfo& segment, const Stacks& stacks) {
  py::dict result;
  result["device"] = static_cast<int>(segment.device);
  result["address"] = segment.address;
  result["total_size"] = segment.total_size;
  result["allocated_size"] = segment.allocated_size;
  result["active_size"] = segment.active_size;
  result["requested_size"] = segment.requested_size;
  result["stream"] = reinterpret_cast<uintptr_t>(segment.stream);
  result["segment_type"] = segment.is_large ? "large" : "small";
  result["segment_pool_id"] = as_tuple(segment.owner_private_pool_id);
  result["is_expandable"] = segment.is_expandable;
  result["frames"] = stacks.frames(segment.context_when_allocated);
  py::list blocks;
  size_t address = segment.address;
  for (const BlockInfo& block : segment.blocks) {
    py::dict entry;
    entry["address"] = address;
    entry["size"] = block.size;
    entry["requested_size"] = block.requested_size;
    entry["state"] = state_name(block);
    entry["frames"] = stacks.frames(block.context_when_allocated);
    blocks.append(std::move(entry));
    address += block.size;
  }
  result["blocks"] = std::move(blocks);
  return result;
}

py::dict as_dict(const TraceEntry& entry, const Stacks& stacks) {
  py::dict result;
  result["action"] = action_name(entry.action_);
  result[entry.action_ == TraceEntry::OOM ? "device_free" : "addr"] = entry.addr_;
  result["size"] = entry.size_;
  result["stream"] = reinterpret_cast<uintptr_t>(entry.stream_);
  result["time_us"] = entry.time_.t_;
  result["pool_id"] = as_tuple(entry.mempool_);
  result["compile_context"] = entry.compile_context_;
  result["user_metadata"] = entry.user_metadata_;
  result["frames"] = stacks.frames(entry.context_);
  return result;
}

py::dict as_dict(const AnnotationEntry& entry) {
  py::dict result;
  result["device"] = static_cast<int>(entry.device_);
  result["time_us"] = entry.time_.t_;
  for (const auto& [name, value] : entry.metadata_) {
    result[py::str(name)] = value;
  }
  return result;
}

py::dict allocator_settings() {
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  py::dict result;
  result["PYTORCH_ALLOC_CONF"] = Config::last_allocator_settings();
  result["max_split_size"] = static_cast<int64_t>(std::min<size_t>(Config::max_split_size(), INT64_MAX));
  result["garbage_collection_threshold"] = Config::garbage_collection_threshold();
  result["expandable_segments"] = Config::use_expandable_segments();
  py::dict divisions; // by the upper bound of the sizes, in MiB
  size_t bound = 1;
  for (const size_t count : Config::roundup_power2_divisions()) {
    divisions[py::str(std::to_string(bound))] = count;
    bound *= 2;
  }
  result["roundup_power2_divisions"] = std::move(divisions);
  return result;
}

py::dict memory_snapshot(const std::optional<c10::MempoolId_t>& pool, bool include_traces, DeviceArgument device) {
  const allocator::SnapshotInfo snapshot = allocator::snapshot(pool.value_or(c10::MempoolId_t{0, 0}), include_traces);
  const auto wanted = [device](size_t index) { return device < 0 || index == static_cast<size_t>(device); };
  Stacks stacks;
  for (const SegmentInfo& segment : snapshot.segments) {
    stacks.add(segment.context_when_allocated);
    for (const BlockInfo& block : segment.blocks) {
      stacks.add(block.context_when_allocated);
    }
  }
  for (const auto& entries : snapshot.device_traces) {
    for (const TraceEntry& entry : entries) {
      stacks.add(entry.context_);
    }
  }
  stacks.symbolize();

  py::list segments;
  for (const SegmentInfo& segment : snapshot.segments) {
    if (wanted(static_cast<size_t>(segment.device))) {
      segments.append(as_dict(segment, stacks));
    }
  }
  py::list traces;
  for (size_t index = 0; index < snapshot.device_traces.size(); ++index) {
    py::list entries;
    if (wanted(index)) {
      for (const TraceEntry& entry : snapshot.device_traces[index]) {
        entries.append(as_dict(entry, stacks));
      }
    }
    traces.append(std::move(entries));
  }
  py::list annotations;
  for (const AnnotationEntry& entry : snapshot.external_annotations) {
    annotations.append(as_dict(entry));
  }
  py::dict result;
  result["segments"] = std::move(segments);
  result["device_traces"] = std::move(traces);
  result["allocator_settings"] = allocator_settings();
  result["external_annotations"] = std::move(annotations);
  return result;
}

py::object allocation_traceback(uintptr_t address) {
  const auto context = allocator::getContextForPointer(reinterpret_cast<const void*>(address));
  if (context == nullptr) {
    return py::none();
  }
  Stacks stacks;
  stacks.add(context);
  stacks.symbolize();
  return stacks.frames(context);
}

// ---- observers

void attach_out_of_memory_observer(py::function observer) {
  // Leaked with the observer list, which outlives the interpreter.
  auto* const kept = new py::function(std::move(observer));
  allocator::attachOutOfMemoryObserver([kept](int64_t device, size_t nbytes, size_t total, size_t free) {
    if (!interpreter_lives()) {
      return;
    }
    const py::gil_scoped_acquire gil;
    try {
      (*kept)(device, nbytes, total, free);
    } catch (py::error_already_set& error) {
      // The caller expects the out-of-memory error; this one is reported through Python's hook for unraisable exceptions.
      error.discard_as_unraisable("an observer of exhausted musa memory");
    }
  });
}

// ---- statistics

py::dict as_dict(const c10::CachingAllocator::Stat& stat) {
  py::dict result;
  result["current"] = stat.current;
  result["peak"] = stat.peak;
  result["allocated"] = stat.allocated;
  result["freed"] = stat.freed;
  return result;
}

py::dict as_dict(const c10::CachingAllocator::DurationStat& stat) {
  py::dict result;
  result["total"] = stat.total;
  result["max"] = stat.max;
  result["min"] = stat.min;
  result["count"] = stat.count;
  result["avg"] = stat.count == 0 ? 0 : stat.total / stat.count;
  return result;
}

py::dict memory_stats_beyond_torch(DeviceArgument device) {
  using c10::CachingAllocator::StatType;
  const auto stats = allocator::getDeviceStats(device);
  py::dict pools;
  c10::musa::for_each_private_pool(stats, [&pools](const auto& id, const auto& stat) {
    py::dict entry;
    entry["all"] = as_dict(stat[static_cast<size_t>(StatType::AGGREGATE)]);
    entry["small_pool"] = as_dict(stat[static_cast<size_t>(StatType::SMALL_POOL)]);
    entry["large_pool"] = as_dict(stat[static_cast<size_t>(StatType::LARGE_POOL)]);
    pools[as_tuple(id)] = std::move(entry);
  });
  py::dict result;
  result["num_oom_rejections"] = c10::musa::rejected_requests(stats);
  result["reserved_bytes_by_private_pools"] = std::move(pools);
  return result;
}

at::HostAllocator& host_allocator() { return *at::getHostAllocator(at::kPrivateUse1); }

py::dict host_memory_stats() {
  const at::HostStats stats = host_allocator().get_stats();
  py::dict result;
  result["num_host_alloc"] = stats.num_host_alloc;
  result["num_host_free"] = stats.num_host_free;
  result["allocations"] = as_dict(stats.allocations);
  result["allocated_bytes"] = as_dict(stats.allocated_bytes);
  result["active_requests"] = as_dict(stats.active_requests);
  result["active_bytes"] = as_dict(stats.active_bytes);
  result["host_alloc_time"] = as_dict(stats.host_alloc_time);
  result["host_free_time"] = as_dict(stats.host_free_time);
  return result;
}

} // namespace

void bind_memory_history(py::module_& m) {
  m.def("record_memory_history", &record_memory_history);
  m.def("is_history_enabled", &allocator::isHistoryEnabled);
  m.def("memory_snapshot", &memory_snapshot);
  m.def("allocation_traceback", &allocation_traceback);
  m.def("set_memory_metadata", &allocator::setUserMetadata);
  m.def("get_memory_metadata", &allocator::getUserMetadata);
  m.def("push_compile_context", [](std::string context) { allocator::pushCompileContext(context); });
  m.def("pop_compile_context", &allocator::popCompileContext);
  m.def("attach_out_of_memory_observer", &attach_out_of_memory_observer);
  m.def("memory_stats_beyond_torch", &memory_stats_beyond_torch);
  m.def("host_memory_stats", &host_memory_stats);
  m.def("reset_accumulated_host_memory_stats", [] { host_allocator().reset_accumulated_stats(); });
  m.def("reset_peak_host_memory_stats", [] { host_allocator().reset_peak_stats(); });
}

} // namespace musa_runtime::python
