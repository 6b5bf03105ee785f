// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "recorder.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/util/StringUtil.h>
#include <c10/util/thread_name.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include <future>
#include <iostream>
#include <sstream>
#include <thread>

#include "python_use.h"
#include "settings.h"

namespace c10d::mccl {
namespace {

constexpr const char* kFormat = "2.10"; // of the dumps that torch 2.13 reads and writes

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

using Record = c10::Dict<c10::IValue, c10::IValue>;

Record new_record() { return Record(c10::AnyType::get(), c10::AnyType::get()); }

c10::List<c10::IValue> list_of_sizes(const Operands& operands) {
  c10::List<c10::IValue> list(c10::AnyType::get());
  for (size_t i = 0; i < operands.count(); ++i) {
    list.push_back(c10::List<int64_t>(operands.sizes(i)));
  }
  return list;
}

c10::List<c10::IValue> list_of_dtypes(const Operands& operands) {
  c10::List<c10::IValue> list(c10::AnyType::get());
  for (size_t i = 0; i < operands.count(); ++i) {
    list.push_back(std::string(c10::toString(operands.dtype(i))));
  }
  return list;
}

template <class T>
c10::IValue value_or_none(const std::optional<T>& value) {
  return value.has_value() ? c10::IValue(*value) : c10::IValue();
}

} // namespace

Recorder& Recorder::instance() {
  static Recorder& instance = *new Recorder(
      static_cast<size_t>(
          environment_number({"TORCH_FR_BUFFER_SIZE", "TORCH_MCCL_TRACE_BUFFER_SIZE"}, 2000, 0, 1 << 24)));
  return instance;
}

Recorder::Recorder(size_t entries)
    : capacity_(entries), cpp_stacks_(environment_flag({"TORCH_FR_CPP_STACK", "TORCH_MCCL_TRACE_CPP_STACK"}, false)) {
  ring_.reserve(std::min<size_t>(entries, 4096));
}

std::optional<size_t> Recorder::record(Call call, std::weak_ptr<const Progress> progress) {
  if (!enabled()) {
    return std::nullopt;
  }
  Entry entry;
  entry.call = std::move(call);
  entry.progress = std::move(progress);
  entry.stack = torch::CapturedTraceback::gather(/*python=*/true, /*script=*/true, cpp_stacks_);
  entry.thread_id = std::this_thread::get_id();
  entry.thread_name = c10::getThreadName();
  entry.created = now_ns();
  Entry replaced; // freed without the lock, because its frames may need the GIL
  {
    const std::lock_guard lock(mutex_);
    entry.id = next_id_++;
    const size_t id = entry.id;
    if (ring_.size() < capacity_) {
      ring_.push_back(std::move(entry));
    } else {
      replaced = std::exchange(ring_[place(id)], std::move(entry));
    }
    return id;
  }
}

void Recorder::update(Entry& entry, const Progress& progress) {
  if (!entry.started.has_value() && progress.started()) {
    entry.started = now_ns();
  }
  if (!entry.completed.has_value() && progress.finished()) {
    entry.completed = now_ns();
  }
}

void Recorder::finish(std::optional<size_t> id, bool completed, std::optional<float> milliseconds) {
  if (!id.has_value()) {
    return;
  }
  const std::lock_guard lock(mutex_);
  Entry* const entry = *id >= first_id_ && place(*id) < ring_.size() ? &ring_[place(*id)] : nullptr;
  if (entry == nullptr || entry->id != *id) {
    return; // overwritten or reset since
  }
  entry->retired = true;
  entry->duration = milliseconds;
  if (completed) {
    const int64_t now = now_ns();
    entry->started = entry->started.value_or(now);
    entry->completed = entry->completed.value_or(now);
  }
  entry->progress.reset();
}

void Recorder::name_group(const GroupName& group, const std::vector<uint64_t>& ranks) {
  const std::lock_guard lock(mutex_);
  groups_[group.name] = {group.description, c10::str("[", c10::Join(", ", ranks), "]")};
}

void Recorder::set_status(size_t group, const Status& status) {
  const std::lock_guard lock(mutex_);
  status_[group] = status;
}

void Recorder::set_library_version(std::string version) {
  const std::lock_guard lock(mutex_);
  library_version_ = std::move(version);
}

std::shared_ptr<const Recorder::Snapshot> Recorder::snapshot() {
  auto taken = std::make_shared<Snapshot>();
  // Taken together with the entries, because a call may finish meanwhile
  std::vector<std::shared_ptr<const Progress>> progress;
  {
    const std::lock_guard lock(mutex_);
    taken->entries = ring_;
    taken->groups = groups_;
    taken->status = status_;
    taken->library_version = library_version_;
    for (const Entry& entry : taken->entries) {
      progress.push_back(entry.progress.lock());
    }
  }
  const auto between = c10::musa::BetweenCaptures::enter();
  for (size_t i = 0; between && i < progress.size(); ++i) {
    if (progress[i] != nullptr) {
      update(taken->entries[i], *progress[i]);
    }
  }
  std::sort(taken->entries.begin(), taken->entries.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
  return taken;
}

std::string Recorder::dump(const Snapshot& snapshot, bool collectives, bool stacks, bool only_active) {
  Record all = new_record();
  all.insert("version", kFormat);
  all.insert("comm_lib_version", snapshot.library_version);
  Record config = new_record();
  for (const auto& [name, group] : snapshot.groups) {
    Record record = new_record();
    record.insert("name", name);
    record.insert("desc", group.first);
    record.insert("ranks", group.second);
    config.insert(name, record);
  }
  all.insert("pg_config", config);
  Record status = new_record();
  for (const auto& [group, seen] : snapshot.status) {
    Record record = new_record();
    record.insert("last_enqueued_collective", seen.enqueued);
    record.insert("last_started_collective", seen.started);
    record.insert("last_completed_collective", seen.completed);
    status.insert(std::to_string(group), record);
  }
  all.insert("pg_status", status);
  if (!collectives) {
    return pickle_str(all);
  }

  const std::vector<Entry>& entries = snapshot.entries;
  torch::SymbolizedTracebacks symbols;
  if (stacks) {
    std::vector<torch::CapturedTraceback*> tracebacks;
    for (const Entry& entry : entries) {
      tracebacks.push_back(entry.stack.get());
    }
    symbols = torch::symbolize(tracebacks);
  }
  std::vector<c10::IValue> frames;
  for (const auto& frame : symbols.all_frames) {
    Record record = new_record();
    record.insert("name", frame.funcname);
    record.insert("filename", frame.filename);
    record.insert("line", static_cast<int64_t>(frame.lineno));
    frames.emplace_back(record);
  }

  c10::List<c10::IValue> list(c10::AnyType::get());
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (only_active && entry.completed.has_value()) {
      continue;
    }
    Record record = new_record();
    c10::List<c10::IValue> stack(c10::AnyType::get());
    if (stacks) {
      for (const uint64_t frame : symbols.tracebacks.at(i)) {
        stack.push_back(frames.at(frame));
      }
    }
    record.insert("frames", stack);
    record.insert("record_id", static_cast<int64_t>(entry.id));
    record.insert("pg_id", static_cast<int64_t>(entry.call.group));
    record.insert("process_group", std::make_tuple(entry.call.group_name->name, entry.call.group_name->description));
    record.insert("collective_seq_id", static_cast<int64_t>(entry.call.collective_seq));
    record.insert("p2p_seq_id", static_cast<int64_t>(entry.call.p2p_seq));
    record.insert("op_id", static_cast<int64_t>(entry.call.op));
    record.insert("profiling_name", entry.call.operation->name());
    record.insert("time_created_ns", entry.created);
    if (entry.duration.has_value()) {
      record.insert("duration_ms", static_cast<double>(*entry.duration));
    }
    record.insert("input_sizes", list_of_sizes(entry.call.operation->inputs));
    record.insert("input_dtypes", list_of_dtypes(entry.call.operation->inputs));
    record.insert("output_sizes", list_of_sizes(entry.call.operation->outputs));
    record.insert("output_dtypes", list_of_dtypes(entry.call.operation->outputs));
    record.insert("state", entry.completed ? "completed" : entry.started ? "started" : "scheduled");
    record.insert("time_discovered_started_ns", value_or_none(entry.started));
    record.insert("time_discovered_completed_ns", value_or_none(entry.completed));
    record.insert("retired", entry.retired);
    record.insert("timeout_ms", static_cast<int64_t>(entry.call.timeout.count()));
    record.insert("is_p2p", entry.call.p2p);
    record.insert("thread_id", (std::ostringstream() << entry.thread_id).str());
    record.insert("thread_name", entry.thread_name);
    list.push_back(record);
  }
  all.insert("entries", list);
  return pickle_str(all);
}

void Recorder::reset() {
  std::vector<Entry> forgotten; // freed without the lock
  const std::lock_guard lock(mutex_);
  forgotten.swap(ring_);
  first_id_ = next_id_; // not reset to 0, because pending calls keep their numbers
}

void write_dump(
    const std::shared_ptr<const Recorder::Snapshot>& record, int global_rank, std::chrono::milliseconds limit) try {
  const bool only_active = getCvarBool(TORCH_INCLUDE_ONLY_ACTIVE, false);
  const bool stacks = getCvarBool(TORCH_INCLUDE_STACK_TRACE, true);
  std::string text;
  bool done = false;
  if (stacks) {
    // Resolving stacks takes the GIL, and another thread may hold it forever. So a separate thread does it, and is
    // abandoned if it does not get the GIL in time.
    auto promise = std::make_shared<std::promise<std::string>>();
    std::future<std::string> future = promise->get_future();
    std::thread([promise, record, only_active] {
      c10::setThreadName("mccl_dump");
      // The first stack takes seconds, because torch imports its compiler for it.
      try {
        promise->set_value(Recorder::dump(*record, true, static_cast<bool>(record->python), only_active));
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    }).detach();
    if (future.wait_for(limit) == std::future_status::ready) {
      try {
        text = future.get();
        done = true;
      } catch (const std::exception& error) {
        std::cerr << "The flight record is written without stacks: " << error.what() << std::endl;
      }
    }
  }
  if (!done) {
    text = Recorder::dump(*record, true, false, only_active);
  }
  DebugInfoWriter::getWriter(global_rank).write(text);
} catch (const std::exception& error) {
  std::cerr << "The flight record could not be written: " << error.what() << std::endl;
}

void start_dump(std::shared_ptr<const Recorder::Snapshot> record, int global_rank, std::chrono::milliseconds limit) {
  if (!record->python) {
    write_dump(record, global_rank, limit);
    return;
  }
  std::thread([record = std::move(record), global_rank, limit] { write_dump(record, global_rank, limit); }).detach();
}

std::string dump_target(int global_rank) { return DebugInfoWriter::getWriter(global_rank).getWriterTarget(); }

} // namespace c10d::mccl
