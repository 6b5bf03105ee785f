// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace musa_emulator::mccl {
namespace {

enum class Level { None, Warn, Info };

Level level() {
  static const Level chosen = [] {
    const char* value = std::getenv("MCCL_DEBUG");
    const std::string text = value != nullptr ? value : "WARN";
    return text == "NONE" ? Level::None : text == "INFO" || text == "TRACE" ? Level::Info : Level::Warn;
  }();
  return chosen;
}

void say(const char* kind, const std::string& text) {
  std::fprintf(stderr, "MCCL %s [%d] %s\n", kind, static_cast<int>(getpid()), text.c_str());
}

} // namespace

bool logs_calls() {
  return level() == Level::Info;
}

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
