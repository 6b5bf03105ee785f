// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "log.h"

#include <strings.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace musa_emulator::mccl {
namespace {

enum class Level { None, Warn, Info };

void say(const char* kind, const std::string& text) {
  std::fprintf(stderr, "MCCL %s [%d] %s\n", kind, static_cast<int>(getpid()), text.c_str());
}

Level level() {
  static const Level chosen = [] {
    // NCCL's levels, which it compares without regard to case.
    constexpr std::pair<const char*, Level> kLevels[] = {
        {"NONE", Level::None},
        {"VERSION", Level::Warn},
        {"WARN", Level::Warn},
        {"INFO", Level::Info},
        {"TRACE", Level::Info}};
    const char* value = std::getenv("MCCL_DEBUG");
    if (value == nullptr || *value == '\0') {
      return Level::Warn;
    }
    for (const auto& [name, level] : kLevels) {
      if (strcasecmp(value, name) == 0) {
        return level;
      }
    }
    say("WARN",
        std::string("MCCL_DEBUG='") + value +
            "' is invalid; expected NONE, VERSION, WARN, INFO or TRACE, and WARN is used.\nFix: correct it, or unset MCCL_DEBUG");
    return Level::Warn;
  }();
  return chosen;
}

} // namespace

bool logs_calls() { return level() == Level::Info; }

void info(const std::string& text) {
  if (logs_calls()) {
    say("INFO", text);
  }
}

void warn(const std::string& text) {
  if (level() != Level::None) {
    say("WARN", text);
  }
}

mcclResult_t refuse(mcclResult_t result, const char* call, const std::string& reason) {
  warn(std::string(call) + ": " + reason + " (" + mcclGetErrorString(result) + ")");
  return result;
}

} // namespace musa_emulator::mccl
