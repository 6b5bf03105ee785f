// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "group.h"

#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSADeferredError.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/distributed/c10d/TraceUtils.h>

#include <cstdlib>
#include <iostream>
#include <thread>

#include "python_use.h"

namespace c10d::mccl {
namespace {

constexpr std::chrono::milliseconds kBusyInterval{50};
// Added to the time that an access to the store is allowed to take.
constexpr std::chrono::milliseconds kStoreLimit{1000};
constexpr std::chrono::milliseconds kPollLimit{1000};
constexpr const char* kFailed = "failed";

std::atomic<size_t> groups{0};

std::string status_key(int rank) { return c10::str("status/", rank); }

std::vector<uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

void mark(Launched& launched, WorkResult result) {
  const PythonUse callbacks;
  if (callbacks && launched.result && !launched.result->completed()) {
    launched.result->markCompleted(c10::IValue(static_cast<int64_t>(result)));
  }
}

} // namespace

Group::Group(c10::intrusive_ptr<Store> store, int rank, int size, const Settings& settings)
    : store_(store),
      store_name_(describe(store)),
      rank_(rank),
      size_(size),
      settings_(settings),
      number_(groups.fetch_add(1)) {}

void Group::set_name(const GroupName& name, const std::vector<uint64_t>& global_ranks) {
  const std::lock_guard lock(mutex_);
  name_ = std::make_shared<const GroupName>(name);
  global_ranks_ = global_ranks;
  if (global_ranks_.empty()) {
    for (int rank = 0; rank < size_; ++rank) {
      global_ranks_.push_back(static_cast<uint64_t>(rank));
    }
  }
  Recorder::instance().name_group(name, global_ranks_);
}

std::shared_ptr<const GroupName> Group::name() const {
  const std::lock_guard lock(mutex_);
  return name_;
}

std::vector<uint64_t> Group::global_ranks() const {
  const std::lock_guard lock(mutex_);
  return global_ranks_;
}

int Group::global_rank() const {
  const std::lock_guard lock(mutex_);
  const auto own = static_cast<size_t>(rank_);
  return own < global_ranks_.size() ? static_cast<int>(global_ranks_[own]) : rank_;
}

std::string Group::description() const {
  const auto seen = name();
  const bool described = !seen->description.empty() && seen->description != "undefined";
  const std::string& group = described ? seen->description : seen->name;
  return c10::str("[rank ", rank_, " of ", size_, ", group ", group, "]");
}

void Group::add_hosts(const Hosts& hosts) {
  const std::lock_guard lock(mutex_);
  for (const auto& [rank, host] : hosts) {
    hosts_.insert_or_assign(rank, host);
  }
}

std::string Group::host_of(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = hosts_.find(rank);
  return found != hosts_.end() ? " [on " + found->second + "]" : "";
}

// ---- pending calls

bool Group::add(const std::shared_ptr<Launched>& launched) {
  Recorder::Status progress;
  bool only;
  {
    const std::lock_guard lock(mutex_);
    only = pending_.empty();
    if (failure_ != nullptr) {
      // set_failure() has seen only the calls before this one
      launched->fail(failure_);
    }
    pending_.push_back(launched);
    last_enqueued_ = launched->operations;
    if (!launched->p2p) {
      progress_.enqueued = static_cast<int64_t>(launched->seq());
    }
    progress = progress_;
  }
  Recorder::instance().set_status(number_, progress);
  return only;
}

void Group::add(const std::shared_ptr<Communicator>& comm) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) {
      std::erase_if(communicators_, [](const auto& other) { return other.expired(); });
      communicators_.push_back(comm);
      return;
    }
  }
  comm->abort();
  check();
}

std::vector<std::shared_ptr<Communicator>> Group::communicators() const {
  std::vector<std::shared_ptr<Communicator>> alive;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : communicators_) {
    if (auto comm = weak.lock()) {
      alive.push_back(std::move(comm));
    }
  }
  return alive;
}

void Group::drain(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto done = [this] { return pending_.empty() || failure_ != nullptr; };
  if (!changed_.wait_for(lock, timeout, done)) {
    const size_t left = pending_.size();
    lock.unlock();
    C10_THROW_ERROR(
        DistBackendError,
        c10::str(description(), ": ", left, " calls have not finished within ", timeout.count(), " ms."));
  }
  lock.unlock();
  check();
}

void Group::free_operands() {
  if (!finished_operands_.empty()) {
    finished_operands_.clear();
  }
}

void Group::set_on_completion(CompletionHook hook) {
  const std::lock_guard lock(mutex_);
  on_completion_ = std::move(hook);
}

// ---- failure

std::exception_ptr Group::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Group::check() const {
  if (const auto seen = failure()) {
    c10::musa::forget_deferred_error(seen);
    std::rethrow_exception(seen);
  }
}

std::string Group::status() const {
  std::shared_ptr<const Operations> enqueued, completed;
  size_t open = 0;
  {
    const std::lock_guard lock(mutex_);
    enqueued = last_enqueued_;
    completed = last_completed_;
    open = pending_.size();
  }
  if (enqueued == nullptr) {
    return "has made no call";
  }
  return c10::str(
      "last called ", enqueued->text(), open == 0 ? "; all calls have finished" : c10::str("; ", open, " not finished"),
      completed == nullptr ? "; none has finished" : c10::str("; last finished ", completed->text()));
}

// Writes the note that the other ranks find in the store, and collects their replies, in short accesses: other groups use the
// connection meanwhile. Returns nullopt if the store does not respond.
std::optional<Group::Answers> Group::ask_ranks(const std::string& reason, std::chrono::milliseconds limit) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) {
    keys.push_back(status_key(rank));
  }
  const auto write = [reason, own = keys[static_cast<size_t>(rank_)], status = status()](Store& store) {
    store.set(own, to_bytes(status));
    if (!store.check({kFailed})) {
      store.set(kFailed, to_bytes(reason));
    }
    return true;
  };
  if (!store_.within(limit + kStoreLimit, write).has_value()) {
    return std::nullopt;
  }
  store_.announce_failure();
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < deadline) {
    const auto all = store_.within(kStoreLimit, [keys](Store& store) { return store.check(keys); });
    if (!all.has_value()) {
      return std::nullopt;
    }
    if (*all) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return store_.within(kStoreLimit, [keys](Store& store) {
    Answers answers;
    for (const std::string& key : keys) {
      answers.push_back(store.check({key}) ? std::optional(store.get_to_str(key)) : std::nullopt);
    }
    return answers;
  });
}

std::string Group::reports(const std::string& reason) {
  // The other ranks find the note within one interval of polling. The program waits for the error meanwhile.
  const auto limit = settings_.coordination * 7 / 4;
  std::string text = "\nState of the ranks of the group:";
  std::string problem, desync;
  std::optional<Answers> answers;
  try {
    answers = ask_ranks(reason, limit);
    problem = answers.has_value() ? "" : "does not answer";
    if (answers.has_value() && settings_.desync_debug) {
      const auto report = store_.within(limit + kStoreLimit, [rank = rank_, size = size_](Store& store) {
        auto shared = c10::intrusive_ptr<Store>::reclaim_copy(&store);
        return retrieveDesyncReport(shared, "MCCL", rank, size);
      });
      desync = "\n" + report.value_or("The store no longer answers, so the calls of the ranks are not compared.");
    }
  } catch (const std::exception& error) {
    const std::string what = error.what();
    problem = c10::str("is no longer reachable: ", what.substr(0, what.find('\n')));
    desync = c10::str("\nThe calls of the ranks are not compared: ", store_name_, " ", problem);
  }
  if (!answers.has_value()) {
    // A rank hosts the store, so the store may have ended with it.
    Hosts hosts;
    {
      const std::lock_guard lock(mutex_);
      hosts = hosts_;
    }
    return c10::str(
        text, " ", store_name_, " ", problem, ".", hosts.empty() ? "" : "\nThe ranks run on:", describe(hosts));
  }
  for (int rank = 0; rank < size_; ++rank) {
    const auto& answer = (*answers)[static_cast<size_t>(rank)];
    text += c10::str(
        "\n  rank ", rank, ": ",
        answer.value_or("does not answer; it has exited, is stopped, or cannot reach the store"), host_of(rank));
  }
  return text + desync;
}

std::shared_ptr<const Recorder::Snapshot> Group::record() const {
  return settings_.dump_on_failure && Recorder::instance().enabled() ? Recorder::instance().snapshot() : nullptr;
}

void Group::fail(ErrorType kind, const std::shared_ptr<Launched>& launched, const std::string& what) {
  if (failing_.exchange(true)) {
    std::unique_lock lock(mutex_); // another thread reports a failure
    changed_.wait(lock, [this] { return failure_ != nullptr; });
    if (launched != nullptr) {
      launched->fail(failure_);
    }
    return;
  }
  // Another rank may abort its communicator while this one still collects reports. That can end this rank's calls, with
  // results of no meaning, so waits of the program block for the error from now on.
  const c10::musa::ComingError coming;
  error_.store(kind);
  const std::string reason =
      c10::str(description(), " ", launched != nullptr ? launched->operations->text() + " " : "", what);
  // Taken before the abort, which ends the calls.
  const auto calls = record();
  const std::string file = calls != nullptr ? "\nThe flight record of this rank: " + dump_target(global_rank()) : "";
  if (settings_.on_error == Settings::OnError::EndAtOnce) {
    if (calls != nullptr) {
      write_dump(calls, global_rank(), settings_.dump_timeout);
    }
    end_process(reason + file);
    return;
  }
  const std::string others = reports(reason);
  const std::string text = c10::str(
      reason, ".", others, file,
      "\nLikely causes: 1. a rank has exited or is stuck elsewhere: see the output of the rank that does not answer or "
      "is behind; 2. the ranks made different calls: python -m torch.distributed.flight_recorder.fr_trace compares the "
      "records; 3. the call needs more time: raise timeout= of init_process_group.\n"
      "Fix: restart from the last checkpoint (torchrun --max-restarts), or call destroy_process_group() and "
      "init_process_group().");
  set_failure(
      std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, text)));
  const bool ends = settings_.on_error == Settings::OnError::TearDown;
  if (calls != nullptr) {
    ends ? write_dump(calls, global_rank(), settings_.dump_timeout)
         : start_dump(calls, global_rank(), settings_.dump_timeout);
  }
  if (ends) {
    end_process(text);
  }
}

bool Group::set_failure(const std::exception_ptr& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) {
      return false;
    }
    // Before the failure is readable: a thread that reads and raises it drops the deferred error. And before the abort,
    // which makes the program's waits return without a valid result.
    c10::musa::defer_error(failure);
    failure_ = failure;
    for (const auto& launched : pending_) {
      launched->fail(failure);
    }
  }
  changed_.notify_all();
  for (const auto& comm : communicators()) {
    comm->abort();
  }
  return true;
}

void Group::abort(const std::string& reason) {
  if (!failing_.exchange(true)) {
    error_.store(ErrorType::COMM_ERROR);
  }
  const auto failure = std::make_exception_ptr(
      c10::DistBackendError(
          {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, c10::str(description(), " ", reason)));
  if (set_failure(failure)) {
    c10::musa::forget_deferred_error(failure); // the program requested the abort
  }
}

void Group::end_process(const std::string& reason) {
  std::cerr << reason << "\nThe process is terminated, as TORCH_MCCL_ASYNC_ERROR_HANDLING requests." << std::endl;
  std::abort();
}

// ---- polling by the watchdog

std::optional<std::string> Group::async_error_of(const Launched& launched) const {
  for (const auto& comm : launched.comms) {
    if (auto error = async_error(*comm)) {
      return error;
    }
  }
  return std::nullopt;
}

// Returns the state that the device and MCCL report for the calls; empty during a graph capture.
Group::Polled Group::query_calls(const std::vector<std::shared_ptr<Launched>>& calls) const {
  Polled polled;
  const auto between = c10::musa::BetweenCaptures::enter();
  if (!between) {
    return polled;
  }
  for (const auto& launched : calls) {
    bool finished = false;
    std::optional<float> milliseconds;
    try {
      finished = launched->finished();
      milliseconds = finished ? launched->milliseconds() : std::nullopt;
    } catch (const c10::Error& error) {
      if (polled.broken == nullptr) {
        polled.broken = launched;
        polled.reason = c10::str("failed on the device: ", error.what_without_backtrace());
      }
      continue;
    }
    if (settings_.desync_debug && !launched->start_traced && launched->started()) {
      launched->start_traced = true;
      polled.started.push_back(launched);
    }
    if (finished || launched->failure() != nullptr) {
      polled.ended.push_back({launched, milliseconds});
    } else if (const auto error = async_error_of(*launched); error.has_value() && polled.broken == nullptr) {
      polled.broken = launched;
      polled.reason = "cannot finish: " + *error;
    } else if (launched->age() > launched->timeout && polled.late == nullptr) {
      polled.late = launched;
    }
  }
  return polled;
}

std::function<void()> Group::poll_calls() {
  std::vector<std::shared_ptr<Launched>> calls;
  CompletionHook hook;
  {
    const std::lock_guard lock(mutex_);
    calls.assign(pending_.begin(), pending_.end());
    hook = on_completion_;
  }
  auto [ended, started, late, broken, reason] = query_calls(calls);
  for (const auto& launched : started) {
    update_desync_trace(*launched, false);
  }
  for (const auto& [launched, milliseconds] : ended) {
    const bool good = launched->failure() == nullptr;
    for (const auto& record : launched->records) {
      Recorder::instance().finish(record, good, good ? milliseconds : std::nullopt);
    }
    mark(*launched, good ? WorkResult::SUCCESS : WorkResult::COMM_ERROR);
    if (settings_.desync_debug && good) {
      update_desync_trace(*launched, true);
    }
    finished_operands_.take(launched->kept);
    const PythonUse python;
    if (hook && good && python) {
      try {
        hook(*launched, milliseconds);
      } catch (const std::exception& error) {
        broken = launched;
        reason = c10::str("has finished, but its completion hook raised: ", error.what());
      }
    }
  }
  if (!ended.empty()) {
    Recorder::Status progress;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [launched, milliseconds] : ended) {
        pending_.remove(launched);
        last_completed_ = launched->operations;
        if (!launched->p2p) {
          progress_.started = progress_.completed =
              std::max(progress_.completed, static_cast<int64_t>(launched->seq()));
        }
      }
      progress = progress_;
    }
    changed_.notify_all();
    Recorder::instance().set_status(number_, progress);
  }
  if (settings_.on_error == Settings::OnError::Ignore || failing_.load()) {
    return nullptr;
  }
  if (broken != nullptr) {
    return [this, broken, reason] { fail(ErrorType::COMM_ERROR, broken, reason); };
  }
  if (late != nullptr) {
    return [this, late] {
      fail(ErrorType::TIMEOUT, late, c10::str("did not finish within ", late->timeout.count(), " ms"));
    };
  }
  return nullptr;
}

std::function<void()> Group::poll_other_ranks() {
  if (size_ == 1 || answered_) {
    return nullptr;
  }
  std::optional<std::optional<std::string>> found;
  try {
    const size_t failures = store_.failures(settings_.coordination);
    if (seen_failures_ == failures) {
      return nullptr;
    }
    found = store_.within(kPollLimit, [own = status_key(rank_), status = status()](Store& store) {
      if (!store.check({kFailed})) {
        return std::optional<std::string>();
      }
      store.set(own, to_bytes(status));
      return std::optional(store.get_to_str(kFailed));
    });
    if (found.has_value()) {
      seen_failures_ = failures;
    }
  } catch (const std::exception&) {
    return nullptr; // the rank that hosted the store has ended; pending calls report the failure
  }
  const std::optional<std::string> reported = found.value_or(std::nullopt);
  if (!reported.has_value()) {
    return nullptr;
  }
  answered_ = true;
  if (settings_.propagate_error && settings_.on_error != Settings::OnError::Ignore) {
    std::shared_ptr<Launched> current;
    {
      const std::lock_guard lock(mutex_);
      current = pending_.empty() ? nullptr : pending_.front();
    }
    return [this, current, text = "cannot continue, because another rank has failed: " + *reported] {
      fail(ErrorType::REMOTE_ERROR, current, text);
    };
  }
  if (auto calls = record()) {
    start_dump(std::move(calls), global_rank(), settings_.dump_timeout);
  }
  return nullptr;
}

Group::Seen Group::look() {
  Seen seen;
  seen.report = poll_calls();
  if (!seen.report && !failing_.load()) {
    seen.report = poll_other_ranks();
  }
  const std::lock_guard lock(mutex_);
  seen.interval = pending_.empty() ? settings_.coordination : kBusyInterval;
  return seen;
}

std::chrono::milliseconds Group::poll() {
  const Seen seen = look();
  if (seen.report) {
    seen.report();
  }
  return seen.interval;
}

void Group::update_desync_trace(const Launched& launched, bool ended) {
  const std::string key = ended ? getTraceEndKey("MCCL", rank_) : getTraceStartKey("MCCL", rank_);
  store_.post([key, operations = launched.operations](Store& store) {
    auto shared = c10::intrusive_ptr<Store>::reclaim_copy(&store);
    traceUpdate(shared, key, operations->seq, operations->title.text());
  });
}

void name_group(Group& group, const Backend& backend, const Backend::Options& options) {
  const std::string& name = backend.getGroupUid().empty() ? options.group_name : backend.getGroupUid();
  const bool described = !backend.getGroupDesc().empty() && backend.getGroupDesc() != "undefined";
  group.set_name({name, described ? backend.getGroupDesc() : options.group_desc}, options.global_ranks_in_group);
}

} // namespace c10d::mccl
