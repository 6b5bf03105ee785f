// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "communicator.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "capture.h"
#include "errors.h"

namespace c10d::mccl {
namespace {

constexpr std::chrono::milliseconds kBetweenChecks{1000}, kLongestPause{50};
// How long an abort waits for a thread that is within a call. That thread may be waiting for the very communicator.
constexpr std::chrono::seconds kPatienceToAbort{1};

std::string missing_ranks(Store& store, const std::string& key, int ranks) {
  std::vector<int> missing;
  for (int other = 0; other < ranks; ++other) {
    if (!store.check({c10::str(key, "/rank", other)})) {
      missing.push_back(other);
    }
  }
  return missing.empty() ? "no rank in the end, too late" : c10::str("rank ", c10::Join(", ", missing));
}

} // namespace

mcclUniqueId meet(
    Store& store, const std::string& key, int rank, int ranks, std::chrono::milliseconds timeout,
    const std::function<void()>& check) {
  mcclUniqueId id;
  if (rank == 0) {
    MCCL_CHECK(mcclGetUniqueId(&id));
    store.set(key + "/id", std::vector<uint8_t>(id.internal, id.internal + sizeof id.internal));
  }
  store.set(c10::str(key, "/rank", rank), std::vector<uint8_t>{1});
  if (store.add(key + "/arrived", 1) == ranks) {
    store.set(key + "/all", std::vector<uint8_t>{1});
  }
  // Asked again and again, not Store::wait: of stores with timeouts, each has its own idea of how short one may be.
  const auto begin = std::chrono::steady_clock::now();
  auto next_check = begin + kBetweenChecks;
  std::chrono::milliseconds pause{1};
  while (!store.check({key + "/all"})) {
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
              " ms, and there did not come: ", missing_ranks(store, key, ranks),
              ".\nLikely causes: 1. that rank has ended, or is in another call; 2. it needs longer to start: timeout= of "
              "init_process_group."));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  const std::vector<uint8_t> bytes = store.get(key + "/id");
  TORCH_CHECK(bytes.size() == sizeof id.internal, "The store gave ", bytes.size(), " bytes for the id of a communicator.");
  std::memcpy(id.internal, bytes.data(), sizeof id.internal);
  return id;
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
  if (last_stream_.has_value() && *last_stream_ != now && !captures(now)) {
    last_.block(now);
  }
}

void Communicator::issued_on(const c10::musa::MUSAStream& now) {
  if (!captures(now)) {
    last_stream_ = now;
    last_.record(now);
  }
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
  Lock lock(mutex_, kPatienceToAbort);
  if (mcclComm_t handle = handle_.exchange(nullptr)) {
    const c10::musa::MUSAGuard guard(device);
    const mcclResult_t result = mcclCommAbort(handle);
    if (result != mcclSuccess) {
      TORCH_WARN("A communicator of MCCL could not be aborted: ", mcclGetErrorString(result));
    }
  }
}

} // namespace c10d::mccl
