// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "errors.h"

#include <c10/util/StringUtil.h>

namespace c10d::mccl {
namespace {

// Codes whose names in MCCL are not known, by NCCL's numbers. A number that means something else in an SDK gives another
// text below; a name that it does not have would not compile.
constexpr int kUnhandledDeviceError = 1;
constexpr int kInvalidArgument = 4;
constexpr int kRemoteError = 6;

const char* causes_of(mcclResult_t result) {
  switch (static_cast<int>(result)) {
    case kUnhandledDeviceError:
      return "1. an earlier operation of the device failed: MUSA_LAUNCH_BLOCKING=1 finds it; 2. the device ran out of memory.";
    case mcclSystemError:
      return "1. the ranks cannot reach each other: MCCL_SOCKET_IFNAME names the network interface; 2. a rank ended while the "
             "others were connecting; 3. there is no room in /dev/shm.";
    case kInvalidArgument:
    case mcclInvalidUsage:
      return "1. two ranks are on one device: each process needs its own, torch.musa.set_device(local_rank) or device_id= of "
             "init_process_group; 2. the data type is not for this architecture; 3. the ranks disagree on their number.";
    case kRemoteError:
      return "1. another rank has ended: its own output says why; 2. the network failed.";
    default:
      return "1. a fault within MCCL.";
  }
}

} // namespace

std::string explain(mcclResult_t result, const char* call) {
  const std::string text(call);
  return c10::str(
      text.substr(0, text.find('(')), " failed: ", mcclGetErrorString(result), " (", static_cast<int>(result),
      ").\nLikely causes: ", causes_of(result), "\nTo learn more: run with MCCL_DEBUG=INFO.");
}

void throw_mccl_error(mcclResult_t result, const char* call) {
  C10_THROW_ERROR(DistBackendError, explain(result, call));
}

} // namespace c10d::mccl
