// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// State that the threads of a process group share: the pending calls, and the group's failure.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "operation.h"
#include "hosts.h"
#include "recorder.h"
#include "settings.h"
#include "group_store.h"
#include "launched.h"

namespace c10d::mccl {

// Virtual functions exist for tests only.
class Group {
 public:
  // The store's prefix is for this group alone.
  Group(c10::intrusive_ptr<Store> store, int rank, int size, const Settings& settings);
  virtual ~Group() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Settings& settings() const { return settings_; }
  // Index among all groups of this process.
  size_t number() const { return number_; }
  void set_name(const GroupName& name, const std::vector<uint64_t>& global_ranks);
  std::shared_ptr<const GroupName> name() const;
  std::vector<uint64_t> global_ranks() const;
  int global_rank() const;
  // "[rank 1 of 4, group default_pg]"
  std::string description() const;
  // Records where ranks run, for messages. Keeps earlier entries.
  void add_hosts(const Hosts& hosts);

  // ---- pending calls

  // Returns whether the call is the only pending one. The caller must wake the watchdog then, because it may be in a
  // long sleep. If the group has failed meanwhile, the call fails with it: its communicators are or will be aborted.
  bool add(const std::shared_ptr<Launched>& launched);
  // Aborts the communicator and raises the group's failure if the group has failed meanwhile.
  void add(const std::shared_ptr<Communicator>& comm);
  std::vector<std::shared_ptr<Communicator>> communicators() const;
  // Waits until no call is pending. Raises the group's failure, if any.
  void drain(std::chrono::milliseconds timeout);
  // Frees the operands of finished calls on which wait() was not called. Called on the program's thread.
  void free_operands();
  // The hook is called on the watchdog's thread for each finished call, with its duration in milliseconds if timing is
  // enabled.
  using CompletionHook = std::function<void(const Launched&, std::optional<float>)>;
  void set_on_completion(CompletionHook hook);

  // ---- failure

  // Raises the group's failure, if there is one.
  void check() const;
  std::exception_ptr failure() const;
  // Ends the group with the error "<description>: <the call> <what>". Reports the failure to the other ranks and
  // collects their state, and aborts the communicators; the program gets the error at its next wait. The flight record
  // is written afterwards, on another thread. Only the first call has an effect.
  void fail(ErrorType kind, const std::shared_ptr<Launched>& launched, const std::string& what);
  ErrorType error() const { return error_.load(); }
  // Aborts the communicators; pending calls fail with `reason`. Does not wait for a thread that is in fail().
  void abort(const std::string& reason);

  // One poll: the time until the next one, and a function that reports a failure, which takes seconds. Only one thread polls.
  struct Seen {
    std::chrono::milliseconds interval{};
    std::function<void()> report;
  };
  Seen look();
  // The same, and reports a failure itself.
  std::chrono::milliseconds poll();

 protected:
  virtual std::optional<std::string> async_error(const Communicator& comm) const { return comm.async_error(); }
  virtual void end_process(const std::string& reason);

 private:
  // Sets the failure of the group and of its pending calls, then aborts the communicators. Returns false if the group
  // has failed already.
  bool set_failure(const std::exception_ptr& failure);
  struct Ended {
    std::shared_ptr<Launched> call;
    std::optional<float> milliseconds;
  };
  struct Polled {
    std::vector<Ended> ended;
    std::vector<std::shared_ptr<Launched>> started; // since the last poll; with desync debugging only
    std::shared_ptr<Launched> late, broken;
    std::string reason; // why `broken` failed
  };
  std::optional<std::string> async_error_of(const Launched& launched) const;
  Polled query_calls(const std::vector<std::shared_ptr<Launched>>& calls) const;
  std::function<void()> poll_calls();
  std::function<void()> poll_other_ranks();
  using Answers = std::vector<std::optional<std::string>>; // by rank
  std::optional<Answers> ask_ranks(const std::string& reason, std::chrono::milliseconds limit);
  std::string host_of(int rank) const;
  std::string status() const;
  std::string reports(const std::string& reason);
  // The flight record as it is now; nullptr if none is to be written.
  std::shared_ptr<const Recorder::Snapshot> record() const;
  void update_desync_trace(const Launched& launched, bool ended);

  GroupStore store_;
  const std::string store_name_;
  const int rank_, size_;
  const Settings settings_;
  const size_t number_;

  mutable std::mutex mutex_; // guards the fields below
  std::shared_ptr<const GroupName> name_ = std::make_shared<const GroupName>();
  std::vector<uint64_t> global_ranks_;
  std::list<std::shared_ptr<Launched>> pending_;
  std::vector<std::weak_ptr<Communicator>> communicators_;
  Recorder::Status progress_;
  std::shared_ptr<const Operations> last_enqueued_, last_completed_;
  Hosts hosts_;
  std::exception_ptr failure_;
  CompletionHook on_completion_;
  std::condition_variable changed_;

  KeptTensors finished_operands_;
  std::atomic<bool> failing_{false}; // a thread reports a failure, or the group has failed
  std::atomic<ErrorType> error_{ErrorType::SUCCESS};
  // Used by the thread that polls only.
  bool answered_ = false;
  std::optional<size_t> seen_failures_; // of all groups on this store
};

// Names the group after its backend. torch sets the name of a backend step by step after creating it, so it may be
// incomplete.
void name_group(Group& group, const Backend& backend, const Backend::Options& options);

} // namespace c10d::mccl
