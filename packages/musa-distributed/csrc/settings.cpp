// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "settings.h"

#include <c10/musa/MUSAEnvironment.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace c10d::mccl {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& expected) {
  TORCH_CHECK_VALUE(
      false, name, "='", c10::musa::printable(value), "' is invalid; expected ", expected,
      ".\nFix: correct it, or unset ", name);
}

// Calls `parse` with the value of the first name that is set and not empty. The name without the TORCH_ prefix is the older
// form.
template <class T, class Parse>
T read(std::initializer_list<std::string> names, T otherwise, Parse parse) {
  for (const std::string& name : names) {
    if (const std::string value = c10::musa::environment_variable(name.c_str()); !value.empty()) {
      return parse(name, value);
    }
  }
  return otherwise;
}

bool flag(const std::string& name, bool otherwise) {
  return environment_flag({"TORCH_MCCL_" + name, "MCCL_" + name}, otherwise);
}

int number(const std::string& name, int otherwise, int least, int most = std::numeric_limits<int>::max()) {
  return environment_number({"TORCH_MCCL_" + name, "MCCL_" + name}, otherwise, least, most);
}

} // namespace

bool environment_flag(std::initializer_list<std::string> names, bool otherwise) {
  return read(names, otherwise, [](const std::string& name, const std::string& value) {
    std::string word = value;
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
    // The words that torch takes for its own variables.
    if (word == "1" || word == "y" || word == "yes" || word == "t" || word == "true") {
      return true;
    }
    if (word == "0" || word == "n" || word == "no" || word == "f" || word == "false") {
      return false;
    }
    refuse(name, value, "0 or 1");
  });
}

int environment_number(std::initializer_list<std::string> names, int otherwise, int least, int most) {
  return read(names, otherwise, [&](const std::string& name, const std::string& value) {
    int result = 0;
    const char* const last = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), last, result);
    if (error != std::errc() || end != last || result < least || result > most) {
      refuse(name, value, c10::str("a number from ", least, " to ", most));
    }
    return result;
  });
}

Settings Settings::from_environment() {
  Settings s;
  s.on_error = static_cast<OnError>(number("ASYNC_ERROR_HANDLING", static_cast<int>(s.on_error), 0, 3));
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
