// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// MCCL's calls, which succeed and do nothing.
#include <mccl.h>

#include <atomic>

struct mcclComm {
  std::atomic<bool> aborted{false};
};

extern "C" {

const char* mcclGetErrorString(mcclResult_t) {
  return "an error";
}
mcclResult_t mcclGetUniqueId(mcclUniqueId* id) {
  static std::atomic<char> next{1};
  *id = {};
  id->internal[0] = next++;
  return mcclSuccess;
}
mcclResult_t mcclCommInitRank(mcclComm_t* comm, int, mcclUniqueId, int) {
  *comm = new mcclComm;
  return mcclSuccess;
}
mcclResult_t mcclCommDestroy(mcclComm_t comm) {
  delete comm;
  return mcclSuccess;
}
mcclResult_t mcclCommAbort(mcclComm_t comm) {
  return mcclCommDestroy(comm);
}
mcclResult_t mcclCommGetAsyncError(mcclComm_t, mcclResult_t* error) {
  *error = mcclSuccess;
  return mcclSuccess;
}

} // extern "C"
