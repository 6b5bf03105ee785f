// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Fakes of MCCL's calls, which succeed and do nothing unless a test sets another result.
#include "fake_mccl.h"

#include <atomic>
#include <mutex>

struct mcclComm {
  std::atomic<bool> aborted{false};
};

namespace {

std::mutex mutex; // guards init
std::function<mcclResult_t(int)> init;
std::atomic<int> aborts{0};

} // namespace

void set_init_of_fake_mccl(std::function<mcclResult_t(int rank)> wanted) {
  const std::lock_guard lock(mutex);
  init = std::move(wanted);
}

int aborts_of_fake_mccl() { return aborts; }

extern "C" {

const char* mcclGetErrorString(mcclResult_t) { return "an error"; }
mcclResult_t mcclGetUniqueId(mcclUniqueId* id) {
  static std::atomic<char> next{1};
  *id = {};
  id->internal[0] = next++;
  return mcclSuccess;
}
mcclResult_t mcclCommInitRank(mcclComm_t* comm, int, mcclUniqueId, int rank) {
  std::function<mcclResult_t(int)> wanted;
  {
    const std::lock_guard lock(mutex);
    wanted = init;
  }
  if (const mcclResult_t result = wanted ? wanted(rank) : mcclSuccess; result != mcclSuccess) {
    return result;
  }
  *comm = new mcclComm;
  return mcclSuccess;
}
mcclResult_t mcclCommDestroy(mcclComm_t comm) {
  delete comm;
  return mcclSuccess;
}
mcclResult_t mcclCommAbort(mcclComm_t comm) {
  ++aborts;
  return mcclCommDestroy(comm);
}
mcclResult_t mcclCommGetAsyncError(mcclComm_t, mcclResult_t* error) {
  *error = mcclSuccess;
  return mcclSuccess;
}

} // extern "C"
