// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "communicator.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "errors.h"

namespace c10d::mccl {
namespace {

constexpr std::chrono::milliseconds kBetweenChecks{1000}, kLongestPause{50};
// How long an abort waits for a thread that is within a call. That thread may be waiting for the very communicator.
constexpr std::chrono::seconds kPatienceToAbort{1};

using Bytes = std::vector<uint8_t>;

// A word that no other process says, nor this one a second time.
Bytes new_word() {
  std::random_device random;
  Bytes word(16);
  for (uint8_t& byte : word) {
    byte = static_cast<uint8_t>(random());
  }
  return word;
}

Bytes operator+(Bytes one, const Bytes& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

std::optional<Bytes> peek(Store& store, const std::string& key) {
  return store.check({key}) ? std::optional(store.get(key)) : std::nullopt;
}

// A meeting in the store. Each rank says a new word; rank 0 answers with that word and the id; the rank says that it has heard.
// So rank 0 knows that a word is no old one, and the rank that the answer is none. When all have heard, rank 0 lets them go.
class Meeting {
 public:
  Meeting(Store& store, std::string key, int rank, int ranks)
      : store_(store), key_(std::move(key)), rank_(rank), ranks_(ranks), word_(new_word()) {
    if (rank_ == 0) {
      MCCL_CHECK(mcclGetUniqueId(&id_));
      for (int other = 1; other < ranks_; ++other) {
        missing_[other] = {};
      }
    } else {
      store_.set(at("word", rank_), word_);
    }
  }

  // To be called again and again.
  bool is_over() {
    return rank_ == 0 ? all_have_heard() : heard_and_let_go();
  }
  const mcclUniqueId& id() const {
    return id_;
  }
  // Who keeps the others waiting, as far as this rank can tell.
  std::vector<int> absent() const {
    std::vector<int> ranks;
    for (int other = 1; other < ranks_; ++other) {
      if (rank_ == 0 ? missing_.contains(other) : !store_.check({at("word", other)})) {
        ranks.push_back(other);
      }
    }
    return ranks.empty() ? std::vector<int>{0} : ranks;
  }

 private:
  std::string at(const char* what, int rank) const {
    return c10::str(key_, "/", what, "/", rank);
  }
  std::optional<Bytes> peek(const std::string& key) const {
    return store_.check({key}) ? std::optional(store_.get(key)) : std::nullopt;
  }
  Bytes id_bytes() const {
    return {id_.internal, id_.internal + sizeof id_.internal};
  }

  bool all_have_heard() {
    for (auto one = missing_.begin(); one != missing_.end();) {
      auto& [rank, answered] = *one;
      const auto word = peek(at("word", rank));
      if (word.has_value() && answered != *word) {
        store_.set(at("answer", rank), *word + id_bytes());
        answered = *word;
      }
      const bool heard = word.has_value() && peek(at("heard", rank)) == std::optional(*word + id_bytes());
      one = heard ? missing_.erase(one) : std::next(one);
    }
    if (missing_.empty()) {
      store_.set(key_ + "/go", id_bytes());
    }
    return missing_.empty();
  }

  bool heard_and_let_go() {
    if (!heard_) {
      const auto answer = peek(at("answer", rank_));
      if (!answer.has_value() || answer->size() != word_.size() + sizeof id_.internal ||
          !std::equal(word_.begin(), word_.end(), answer->begin())) {
        return false;
      }
      std::memcpy(id_.internal, answer->data() + word_.size(), sizeof id_.internal);
      store_.set(at("heard", rank_), *answer);
      heard_ = true;
    }
    return peek(key_ + "/go") == std::optional(id_bytes());
  }

  Store& store_;
  const std::string key_;
  const int rank_, ranks_;
  const Bytes word_;
  mcclUniqueId id_{};
  bool heard_ = false;
  std::map<int, Bytes> missing_; // of rank 0: who has not heard, and the word that was answered last
};

} // namespace

mcclUniqueId meet(
    Store& store, const std::string& key, int rank, int ranks, std::chrono::milliseconds timeout,
    const std::function<void()>& check) {
  Meeting meeting(store, key, rank, ranks);
  // Asked again and again, not Store::wait: of stores with timeouts, each has its own idea of how short one may be.
  const auto begin = std::chrono::steady_clock::now();
  auto next_check = begin + kBetweenChecks;
  std::chrono::milliseconds pause{1};
  while (!meeting.is_over()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_check) {
      check();
      next_check = now + kBetweenChecks;
    }
    if (now - begin >= timeout) {
      C10_THROW_ERROR(
          DistBackendError,
          c10::str(
              "A communicator of ", ranks, " ranks could not be made: rank ", rank, " waited ", timeout.count(),
              " ms, and there did not come: rank ", c10::Join(", ", meeting.absent()),
              ".\nLikely causes: 1. that rank has ended, or is in another call; 2. it needs longer to start: timeout= of "
              "init_process_group."));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  return meeting.id();
}

Communicator::Communicator(const mcclUniqueId& id, int own, int count, c10::Device on, bool high_priority)
    : rank(own), ranks(count), device(on), stream(c10::musa::getStreamFromPool(high_priority, on.index())) {
  const c10::musa::MUSAGuard guard(device);
  mcclComm_t made = nullptr;
  MCCL_CHECK(mcclCommInitRank(&made, ranks, id, rank));
  handle_.store(made);
}

Communicator::~Communicator() {
  if (mcclComm_t handle = handle_.exchange(nullptr)) {
    const mcclResult_t result = mcclCommDestroy(handle);
    if (result != mcclSuccess) {
      TORCH_WARN("A communicator of MCCL could not be destroyed: ", mcclGetErrorString(result));
    }
  }
}

mcclComm_t Communicator::handle() const {
  const mcclComm_t handle = handle_.load();
  if (handle == nullptr) {
    C10_THROW_ERROR(
        DistBackendError,
        "The communicator was aborted.\nTo mend it: torch.distributed.destroy_process_group(), then init_process_group().");
  }
  return handle;
}

void Communicator::join(const c10::musa::MUSAStream& now) {
  if (last_stream_.has_value() && *last_stream_ != now) {
    last_end_->block(now);
  }
}

void Communicator::issued_on(const c10::musa::MUSAStream& now, std::shared_ptr<c10::musa::MUSAEvent> end) {
  last_stream_ = now;
  last_end_ = std::move(end);
}

std::optional<std::string> Communicator::async_error() const {
  const mcclComm_t handle = handle_.load();
  mcclResult_t error = mcclSuccess;
  if (handle == nullptr || mcclCommGetAsyncError(handle, &error) != mcclSuccess || error == mcclSuccess) {
    return std::nullopt;
  }
  return mcclGetErrorString(error);
}

void Communicator::abort() {
  aborted_.store(true);
  // Not a mutex with timeouts, which thread sanitizers misunderstand.
  Lock lock(mutex_, std::defer_lock);
  const auto deadline = std::chrono::steady_clock::now() + kPatienceToAbort;
  while (!lock.try_lock() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (mcclComm_t handle = handle_.exchange(nullptr)) {
    const c10::musa::MUSAGuard guard(device);
    const mcclResult_t result = mcclCommAbort(handle);
    if (result != mcclSuccess) {
      TORCH_WARN("A communicator of MCCL could not be aborted: ", mcclGetErrorString(result));
    }
  }
}

} // namespace c10d::mccl
