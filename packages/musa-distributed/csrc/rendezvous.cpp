// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "rendezvous.h"

#include <c10/util/StringUtil.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "errors.h"
#include "store_thread.h"

namespace c10d::mccl {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kBetweenChecks{1000}, kLongestPause{50};
// Added to the timeout of the meeting, which is enforced by the meeting itself unless the store blocks.
constexpr milliseconds kStoreLimit{2000};
constexpr milliseconds kNoteLimit{500};

constexpr const char* kCausesOfNetwork =
    "\nLikely causes: 1. a firewall or a missing route between the addresses of the ranks; 2. MCCL uses an interface "
    "that the other hosts cannot reach; 3. a rank or its host has stopped meanwhile; 4. the ranks need more time to "
    "start: raise timeout= of init_process_group.\nFix: on every host, export MCCL_SOCKET_IFNAME=<the interface that connects the hosts>; "
    "MCCL_DEBUG=INFO logs the address that MCCL uses.";

using Bytes = std::vector<uint8_t>;

// Returns a random word, different from those of other processes and of earlier starts.
Bytes new_word() {
  std::random_device random;
  Bytes word(16);
  for (uint8_t& byte : word) {
    byte = static_cast<uint8_t>(random());
  }
  return word;
}

Bytes to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

Bytes to_bytes(const mcclUniqueId& id) { return {id.internal, id.internal + sizeof id.internal}; }

Bytes operator+(Bytes one, const Bytes& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

// Returns the value without `prefix`, or nullopt if it does not begin with it.
std::optional<Bytes> after(const Bytes& prefix, const std::optional<Bytes>& value) {
  if (!value.has_value() || value->size() < prefix.size() ||
      !std::equal(prefix.begin(), prefix.end(), value->begin())) {
    return std::nullopt;
  }
  return Bytes(value->begin() + static_cast<std::ptrdiff_t>(prefix.size()), value->end());
}

std::optional<Bytes> peek(Store& store, const std::string& key) {
  return store.check({key}) ? std::optional(store.get(key)) : std::nullopt;
}

[[noreturn]] void fail(const Start& start, const std::string& what) {
  C10_THROW_ERROR(
      DistBackendError,
      c10::str(start.description, " could not start a communicator of ", start.ranks(), " ranks: ", what));
}

std::string own_rank(const Start& start) { return c10::str("rank ", start.members[start.rank], " on ", own_host()); }

// A rendezvous in the store. Each rank writes a new random word; rank 0 answers with that word and the id; the rank
// confirms the answer. The words let rank 0 and the other ranks ignore keys that an earlier start left in the store.
// When all ranks have confirmed, rank 0 writes "go".
class Meeting {
 public:
  Meeting(Store& store, const Start& start) : store_(store), start_(start), word_(new_word()) {
    // Written before the word, so that a rank that reads an answer to this word finds the place of the same start.
    store_.set(at("host", start_.rank), to_bytes(own_host()));
    if (start_.rank != 0) {
      store_.set(at("word", start_.rank), word_);
      return;
    }
    for (size_t other = 1; other < start_.members.size(); ++other) {
      missing_[other] = {};
    }
    const mcclResult_t result = mcclGetUniqueId(&id_);
    if (result != mcclSuccess) {
      // The error is sent in place of the id, so that the other ranks do not wait for their timeout.
      problem_ = c10::str(own_rank(start_), ": ", explain(result, "mcclGetUniqueId"));
    }
  }

  // One step of the rendezvous; called repeatedly until it returns true.
  bool is_over() { return start_.rank == 0 ? all_confirmed() : is_released(); }
  // Returns the result once is_over() is true. Raises the error that rank 0 reported in place of an id.
  Met result() {
    if (!problem_.empty()) {
      fail(start_, problem_);
    }
    Met met{id_, {}};
    for (size_t rank = 0; rank < start_.members.size(); ++rank) {
      met.hosts[start_.members[rank]] = store_.get_to_str(at("host", rank));
    }
    return met;
  }
  // Returns the ranks that have not arrived yet, as far as this rank can see.
  std::vector<int> absent() const {
    std::vector<int> ranks;
    for (size_t other = 1; other < start_.members.size(); ++other) {
      if (start_.rank == 0 ? missing_.contains(other) : !store_.check({at("word", other)})) {
        ranks.push_back(start_.members[other]);
      }
    }
    return ranks.empty() ? std::vector<int>{start_.members[0]} : ranks;
  }

 private:
  std::string at(const char* what, size_t rank) const { return c10::str(start_.key, "/", what, "/", rank); }
  Bytes answer() const { return to_bytes(id_) + to_bytes(problem_); }

  bool all_confirmed() {
    for (auto one = missing_.begin(); one != missing_.end();) {
      auto& [rank, answered] = *one;
      const auto word = peek(store_, at("word", rank));
      if (word.has_value() && answered != *word) {
        store_.set(at("answer", rank), *word + answer());
        answered = *word;
      }
      const bool confirmed = word.has_value() && peek(store_, at("confirmed", rank)) == std::optional(*word + answer());
      one = confirmed ? missing_.erase(one) : std::next(one);
    }
    if (missing_.empty()) {
      store_.set(start_.key + "/go", answer());
    }
    return missing_.empty();
  }

  bool is_released() {
    if (!confirmed_) {
      const auto content = after(word_, peek(store_, at("answer", start_.rank)));
      if (!content.has_value() || content->size() < sizeof id_.internal) {
        return false;
      }
      std::memcpy(id_.internal, content->data(), sizeof id_.internal);
      problem_.assign(content->begin() + sizeof id_.internal, content->end());
      store_.set(at("confirmed", start_.rank), word_ + *content);
      confirmed_ = true;
    }
    return !problem_.empty() || peek(store_, start_.key + "/go") == std::optional(answer());
  }

  Store& store_;
  const Start& start_;
  const Bytes word_;
  mcclUniqueId id_{};
  std::string problem_; // reported by rank 0 in place of an id
  bool confirmed_ = false;
  std::map<size_t, Bytes> missing_; // on rank 0: the ranks that have not confirmed, and the last word answered
};

// Runs mcclCommInitRank on a separate thread.
class Attempt {
 public:
  Attempt(const Start& start, const mcclUniqueId& id) : state_(std::make_shared<State>()) {
    thread_ = std::thread([state = state_, id, rank = static_cast<int>(start.rank), ranks = start.ranks(),
                           device = start.device, high_priority = start.high_priority] {
      pthread_setname_np(pthread_self(), "mccl_start");
      std::shared_ptr<Communicator> made;
      std::exception_ptr error;
      try {
        made = std::make_shared<Communicator>(id, rank, ranks, device, high_priority);
      } catch (...) {
        error = std::current_exception();
      }
      std::unique_lock lock(state->mutex);
      if (state->abandoned) {
        lock.unlock();
        if (made != nullptr) {
          made->abort(); // too late: the other ranks have timed out as well, or will fail
        }
        return;
      }
      state->made = std::move(made);
      state->error = std::move(error);
      state->done = true;
      state->changed.notify_all();
    });
  }

  ~Attempt() {
    std::unique_lock lock(state_->mutex);
    state_->abandoned = !state_->done;
    const bool done = state_->done;
    const auto unused = std::move(state_->made);
    lock.unlock();
    done ? thread_.join() : thread_.detach();
    if (unused != nullptr) {
      unused->abort();
    }
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  bool wait(milliseconds limit) {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, limit, [this] { return state_->done; });
  }

  // Called after wait() has returned true. Raises the error of mcclCommInitRank.
  std::shared_ptr<Communicator> take() {
    const std::lock_guard lock(state_->mutex);
    if (state_->error != nullptr) {
      std::rethrow_exception(state_->error);
    }
    return std::move(state_->made);
  }

 private:
  struct State {
    std::mutex mutex; // guards the fields below
    std::condition_variable changed;
    bool done = false, abandoned = false;
    std::shared_ptr<Communicator> made;
    std::exception_ptr error;
  };
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

// The second step of a start. Failures are reported to the other ranks through the store, marked with the id, which is
// unique to this start.
class Connection {
 public:
  Connection(const Start& start, Met met, StoreThread& store) : start_(start), met_(std::move(met)), store_(store) {}

  std::shared_ptr<Communicator> make() {
    Attempt attempt(start_, met_.id);
    const auto deadline = Clock::now() + start_.timeout;
    while (true) {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
      if (attempt.wait(std::clamp(left, milliseconds(0), kBetweenChecks))) {
        break;
      }
      if (start_.check) {
        start_.check();
      }
      if (const auto note = note_of_others()) {
        fail(start_, *note + ranks());
      }
      if (Clock::now() >= deadline) {
        const std::string what = c10::str(
            own_rank(start_), " met the other ranks in ", describe(start_.store),
            ", but mcclCommInitRank did not return within ", start_.timeout.count(), " ms.", kCausesOfNetwork);
        note(what);
        fail(start_, what + ranks());
      }
    }
    try {
      return attempt.take();
    } catch (const c10::Error& error) {
      const std::string what = c10::str(own_rank(start_), ": ", error.what_without_backtrace());
      note(what);
      fail(start_, what + ranks());
    }
  }

 private:
  std::string ranks() const { return "\nThe ranks:" + describe(met_.hosts); }
  std::string key() const { return start_.key + "/failed"; }

  void note(const std::string& what) {
    (void)store_.within(kNoteLimit, [key = key(), value = to_bytes(met_.id) + to_bytes(what)](Store& store) {
      store.set(key, value);
      return true;
    });
  }

  std::optional<std::string> note_of_others() {
    if (store_.busy()) {
      return std::nullopt; // it is blocked
    }
    const auto value = store_.within(kNoteLimit, [key = key()](Store& store) { return peek(store, key); });
    const auto text = after(to_bytes(met_.id), value.value_or(std::nullopt));
    return text.has_value() ? std::optional(std::string(text->begin(), text->end())) : std::nullopt;
  }

  const Start& start_;
  const Met met_;
  StoreThread& store_;
};

} // namespace

Met meet(Store& store, const Start& start) {
  Meeting meeting(store, start);
  // Polls instead of Store::wait, because stores differ in the shortest timeout they support.
  const auto begin = Clock::now();
  auto next_check = begin + kBetweenChecks;
  milliseconds pause{1};
  while (!meeting.is_over()) {
    const auto now = Clock::now();
    if (now >= next_check) {
      if (start.check) {
        start.check();
      }
      next_check = now + kBetweenChecks;
    }
    if (now - begin >= start.timeout) {
      fail(
          start,
          c10::str(
              own_rank(start), " waited ", start.timeout.count(), " ms in ", describe(start.store),
              ", but these ranks did not arrive: rank ", c10::Join(", ", meeting.absent()),
              ".\nLikely causes: 1. that rank has exited, or is in another call; 2. its host cannot reach the store; 3. "
              "it needs more time to start.\nFix: see the output of that rank; for 3, raise timeout= of "
              "init_process_group."));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  return meeting.result();
}

Started start_communicator(const Start& start) {
  StoreThread store(start.store);
  auto met = store.within(start.timeout + kStoreLimit, [start](Store& found) { return meet(found, start); });
  if (!met.has_value()) {
    fail(
        start,
        c10::str(
            own_rank(start), " waited ", start.timeout.count(), " ms, but ", describe(start.store),
            " does not answer.\nLikely causes: 1. its host is down or disconnected; 2. a firewall drops its packets.\n"
            "Fix: check that this host reaches that address."));
  }
  const Hosts hosts = met->hosts;
  return {Connection(start, std::move(*met), store).make(), hosts};
}

} // namespace c10d::mccl
