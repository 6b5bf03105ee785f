// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "errors.h"

#include <c10/util/StringUtil.h>

namespace c10d::mccl {
namespace {

// Error codes whose names in MCCL are not documented, assumed equal to NCCL's. If a number has another meaning in some
// SDK, only the text below is wrong; an unknown name would not compile.
constexpr int kUnhandledDeviceError = 1;
constexpr int kInvalidArgument = 4;
constexpr int kRemoteError = 6;

const char* causes_of(mcclResult_t result) {
  switch (static_cast<int>(result)) {
    case kUnhandledDeviceError:
      return "1. an earlier operation on the device failed: run with MUSA_LAUNCH_BLOCKING=1 to find it; 2. the device "
             "is out of memory.";
    case mcclSystemError:
      return "1. the ranks cannot reach each other: set MCCL_SOCKET_IFNAME to the network interface; 2. a rank exited "
             "while the others were connecting; 3. /dev/shm is full.";
    case kInvalidArgument:
    case mcclInvalidUsage:
      return "1. two ranks are on one device: each process needs its own, torch.musa.set_device(local_rank) or device_id="
             " of init_process_group; 2. this architecture does not support the data type; 3. the ranks disagree on "
             "their number.";
    case kRemoteError: return "1. another rank has exited: see its output; 2. the network failed.";
    default: return "1. an internal error of MCCL.";
  }
}

} // namespace

std::string explain(mcclResult_t result, const char* call) {
  const std::string text(call);
  return c10::str(
      text.substr(0, text.find('(')), " failed: ", mcclGetErrorString(result), " (", static_cast<int>(result),
      ").\nLikely causes: ", causes_of(result), "\nFix: run with MCCL_DEBUG=INFO, which logs the details.");
}

void throw_mccl_error(mcclResult_t result, const char* call) {
  C10_THROW_ERROR(DistBackendError, explain(result, call));
}

} // namespace c10d::mccl
