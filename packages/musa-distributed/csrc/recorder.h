// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The flight recorder: the last calls of all process groups of this process, in the format that
// torch.distributed.flight_recorder reads.
#pragma once

#include <torch/csrc/profiler/combined_traceback.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operation.h"
#include "python_use.h"

namespace c10d::mccl {

// The state of a recorded call. Implementations must not wait for the device.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual bool started() const = 0;
  virtual bool finished() const = 0;
};

struct GroupName {
  std::string name, description;
};

class Recorder {
 public:
  // One per process. Never destroyed, because it holds Python frames.
  static Recorder& instance();

  // With 0 entries nothing is recorded.
  explicit Recorder(size_t entries);

  struct Call {
    size_t group = 0; // number within this process
    std::shared_ptr<const GroupName> group_name;
    std::shared_ptr<const Operation> operation;
    uint64_t collective_seq = 0, p2p_seq = 0, op = 0;
    bool p2p = false;
    std::chrono::milliseconds timeout{};
  };
  // Returns an id for finish(), or nullopt if recording is disabled. `progress` may be null, and may expire before
  // finish().
  std::optional<size_t> record(Call call, std::weak_ptr<const Progress> progress);
  // Marks that the call is no longer polled: it has finished or was abandoned.
  void finish(std::optional<size_t> id, bool completed, std::optional<float> milliseconds);

  void name_group(const GroupName& group, const std::vector<uint64_t>& ranks);
  struct Status {
    int64_t enqueued = -1, started = -1, completed = -1; // sequence numbers of collectives
  };
  void set_status(size_t group, const Status& status);
  void set_library_version(std::string version);

  struct Snapshot;
  // Returns the record as it is now: the states of calls are queried, and stacks are resolved by dump().
  std::shared_ptr<const Snapshot> snapshot();
  // Returns a pickle. Takes the GIL if `stacks` is true.
  static std::string dump(const Snapshot& snapshot, bool collectives, bool stacks, bool only_active);
  std::string dump(bool collectives, bool stacks, bool only_active) {
    return dump(*snapshot(), collectives, stacks, only_active);
  }
  // Removes all entries.
  void reset();
  bool enabled() const { return capacity_ > 0; }

 private:
  struct Entry {
    size_t id = 0;
    Call call;
    std::weak_ptr<const Progress> progress;
    std::shared_ptr<torch::CapturedTraceback> stack;
    std::thread::id thread_id;
    std::string thread_name;
    int64_t created = 0;
    std::optional<int64_t> started, completed;
    std::optional<float> duration;
    bool retired = false;
  };
  static void update(Entry& entry, const Progress& progress);
  size_t place(size_t id) const { return (id - first_id_) % capacity_; }

  const size_t capacity_;
  const bool cpp_stacks_;
  std::mutex mutex_; // guards the fields below; no function that blocks is called under it
  std::vector<Entry> ring_;
  size_t next_id_ = 0, first_id_ = 0; // id of the next call, and of the first one since reset()
  std::map<std::string, std::pair<std::string, std::string>> groups_; // name: (description, ranks)
  std::map<size_t, Status> status_;
  std::string library_version_;
};

struct Recorder::Snapshot {
  std::vector<Entry> entries; // in the order of the calls
  std::map<std::string, std::pair<std::string, std::string>> groups;
  std::map<size_t, Status> status;
  std::string library_version;
  // The end of the interpreter waits for this object. A program may end as soon as it gets the error, which is before the
  // record is written.
  PythonUse python;
};

// Writes a record with torch's DebugInfoWriter to the file that TORCH_FR_DUMP_TEMP_FILE names, without stacks if they
// cannot be resolved in time. A failure is reported on stderr.
void write_dump(
    const std::shared_ptr<const Recorder::Snapshot>& record, int global_rank, std::chrono::milliseconds limit);
// Does the same on another thread, because resolving stacks takes seconds. The end of the interpreter waits for it.
void start_dump(std::shared_ptr<const Recorder::Snapshot> record, int global_rank, std::chrono::milliseconds limit);
// Returns the name of the file.
std::string dump_target(int global_rank);

} // namespace c10d::mccl
