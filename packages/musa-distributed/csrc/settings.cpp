// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "settings.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace c10d::mccl {
namespace {

// Uses torch's parsers. The name without the TORCH_ prefix is the older form.
bool flag(const std::string& name, bool otherwise) {
  return getCvarBool({"TORCH_MCCL_" + name, "MCCL_" + name}, otherwise);
}

int number(const std::string& name, int otherwise, int least) {
  const int value = getCvarInt({"TORCH_MCCL_" + name, "MCCL_" + name}, otherwise);
  TORCH_CHECK_VALUE(value >= least, "TORCH_MCCL_", name, " is ", value, "; it must be ", least, " or more.");
  return value;
}

} // namespace

Settings Settings::from_environment() {
  Settings s;
  const int on_error = number("ASYNC_ERROR_HANDLING", static_cast<int>(s.on_error), 0);
  TORCH_CHECK_VALUE(
      on_error <= 3, "TORCH_MCCL_ASYNC_ERROR_HANDLING is ", on_error,
      "; it must be 0 (failures are not detected), 1 (abort, then end the process), 2 (abort and raise) or 3 (end the "
      "process).");
  s.on_error = static_cast<OnError>(on_error);
  s.blocking_wait = flag("BLOCKING_WAIT", s.blocking_wait);
  s.propagate_error = flag("PROPAGATE_ERROR", s.propagate_error);
  s.desync_debug = flag("DESYNC_DEBUG", s.desync_debug);
  s.timing = flag("ENABLE_TIMING", s.timing) || s.desync_debug;
  s.nan_check = flag("NAN_CHECK", s.nan_check);
  s.high_priority = flag("HIGH_PRIORITY", s.high_priority);
  s.record_streams = !flag("AVOID_RECORD_STREAMS", !s.record_streams);
  s.dump_on_failure = flag("DUMP_ON_TIMEOUT", s.dump_on_failure);
  s.monitoring = flag("ENABLE_MONITORING", s.monitoring);
  s.heartbeat_timeout = std::chrono::seconds(number("HEARTBEAT_TIMEOUT_SEC", 480, 1));
  s.coordination = std::chrono::milliseconds(number("COORD_CHECK_MILSEC", 1000, 10));
  s.dump_timeout = std::chrono::milliseconds(number("WAIT_TIMEOUT_DUMP_MILSEC", 15000, 0));
  return s;
}

} // namespace c10d::mccl
