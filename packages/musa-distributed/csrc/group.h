// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What the threads of a process group share: the calls under way, and whether the group can go on.
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
#include "places.h"
#include "recorder.h"
#include "settings.h"
#include "store_thread.h"
#include "work.h"

namespace c10d::mccl {

// Tests derive from it.
class Group {
 public:
  // The store is accessed by a thread of the group alone; see Store::clone.
  Group(c10::intrusive_ptr<Store> store, int rank, int size, const Settings& settings);
  virtual ~Group() = default;

  int rank() const {
    return rank_;
  }
  int size() const {
    return size_;
  }
  const Settings& settings() const {
    return settings_;
  }
  // Of all groups of this process.
  size_t number() const {
    return number_;
  }
  void set_name(const GroupName& name, const std::vector<uint64_t>& global_ranks);
  std::shared_ptr<const GroupName> name() const;
  std::vector<uint64_t> global_ranks() const;
  int global_rank() const;
  // "[rank 1 of 4, group default_pg]"
  std::string who() const;
  // Where ranks run, for messages. Adds to what is known.
  void add_places(const Places& places);

  // ---- calls under way

  // Whether it is the only one: the watchdog may sleep long, and is to be woken.
  bool add(const std::shared_ptr<Launched>& launched);
  void add(const std::shared_ptr<Communicator>& comm);
  std::vector<std::shared_ptr<Communicator>> communicators() const;
  // Waits until nothing is under way. Raises what failed.
  void drain(std::chrono::milliseconds timeout);
  // Operands of calls that nobody waited for. On the program's thread.
  void free_operands();
  // Called for each call that has ended, on the watchdog's thread; with milliseconds where timing is on.
  using CompletionHook = std::function<void(const Launched&, std::optional<float>)>;
  void set_on_completion(CompletionHook hook);

  // ---- failure

  // Raises the failure, once there is one.
  void check() const;
  std::exception_ptr failure() const;
  // Ends the group: "<who>: <the call> <what happened>". The other ranks are told and asked what they are doing, the flight
  // recorder is written, communicators are aborted, and the program gets the error where it next waits. Only the first counts.
  void fail(ErrorType kind, const std::shared_ptr<Launched>& launched, const std::string& what);
  ErrorType error() const {
    return error_.load();
  }
  // Aborts the communicators; calls under way end with the reason.
  void abort(const std::string& reason);

  // What the watchdog does. Returns when it wants to be called again.
  std::chrono::milliseconds look();

 protected:
  virtual std::optional<std::string> async_error(const Communicator& comm) const {
    return comm.async_error();
  }
  virtual void end_process(const std::string& reason);

 private:
  void give_up(const std::exception_ptr& failure);
  struct Ended {
    std::shared_ptr<Launched> call;
    std::optional<float> milliseconds;
  };
  struct Seen {
    std::vector<Ended> ended;
    std::vector<std::shared_ptr<Launched>> started; // with desync debugging: since the last look
    std::shared_ptr<Launched> late, broken;
    std::string reason; // of what is broken
  };
  Seen ask(const std::vector<std::shared_ptr<Launched>>& calls) const;
  bool look_at_calls();
  void look_at_others();
  std::string place_of(int rank) const;
  std::string status() const;
  std::string reports(const std::string& reason);
  std::string write_record() const;
  void update_desync_trace(const Launched& launched, bool ended);

  StoreThread store_;
  const std::string store_name_;
  const int rank_, size_;
  const Settings settings_;
  const size_t number_;

  mutable std::mutex mutex_; // guards what follows
  std::shared_ptr<const GroupName> name_ = std::make_shared<const GroupName>();
  std::vector<uint64_t> global_ranks_;
  std::list<std::shared_ptr<Launched>> under_way_;
  std::vector<std::weak_ptr<Communicator>> communicators_;
  Recorder::Status progress_;
  std::shared_ptr<const Operations> last_enqueued_, last_completed_;
  Places places_;
  std::exception_ptr failure_;
  CompletionHook on_completion_;
  std::condition_variable changed_;

  Shelf left_behind_;
  std::atomic<bool> failing_{false};
  std::atomic<ErrorType> error_{ErrorType::SUCCESS};
  bool published_ = false; // of the watchdog's thread
  std::chrono::steady_clock::time_point next_coordination_{};
};

// Names the group as torch has named its backend so far, which torch does piece by piece after it has made it.
void name_group(Group& group, const Backend& backend, const Backend::Options& options);

} // namespace c10d::mccl
