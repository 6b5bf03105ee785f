// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "faults.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

namespace musa_emulator::mccl {
namespace {

struct Rule {
  std::string call; // empty: any
  uint64_t n;
  Fault fault;
};

struct Rules {
  std::vector<Rule> rules;
  std::string problem;
  std::mutex mutex; // guards the fields below
  std::map<std::string, uint64_t> runs;

  Rules() {
    const char* value = std::getenv("MUSA_EMULATOR_MCCL_FAULT");
    std::istringstream text(value != nullptr ? value : "");
    for (std::string part; std::getline(text, part, ';');) {
      if (!part.empty() && !read(part)) {
        problem = "MUSA_EMULATOR_MCCL_FAULT has '" + part +
            "'; expected CALL@N=ACTION with delay:MS, drop, size or die, as in mcclAllReduce@3=drop";
      }
    }
  }

  bool read(const std::string& part) {
    const size_t at = part.find('@'), equals = part.find('=');
    if (at == std::string::npos || equals == std::string::npos || equals < at) {
      return false;
    }
    char* end = nullptr;
    Rule rule{part.substr(0, at), std::strtoull(part.c_str() + at + 1, &end, 10), {}};
    const std::string action = part.substr(equals + 1);
    if (end != part.c_str() + equals || rule.n == 0) {
      return false;
    }
    if (action == "drop") {
      rule.fault.action = Fault::Action::Drop;
    } else if (action == "size") {
      rule.fault.action = Fault::Action::Size;
    } else if (action == "die") {
      rule.fault.action = Fault::Action::Die;
    } else if (action.rfind("delay:", 0) == 0) {
      rule.fault = {Fault::Action::Delay, std::chrono::milliseconds(std::strtol(action.c_str() + 6, &end, 10))};
      if (*end != '\0' || end == action.c_str() + 6) {
        return false;
      }
    } else {
      return false;
    }
    rules.push_back(std::move(rule));
    return true;
  }
};

Rules& all() {
  static Rules& instance = *new Rules();
  return instance;
}

} // namespace

const std::string& problem_of_faults() {
  return all().problem;
}

Fault next_fault(Kind kind) {
  Rules& r = all();
  if (r.rules.empty()) {
    return {};
  }
  const std::string call = Signature{kind, mcclInt8}.call();
  const std::lock_guard lock(r.mutex);
  const uint64_t of_call = ++r.runs[call], of_any = ++r.runs[""];
  for (const Rule& rule : r.rules) {
    if (rule.call.empty() ? rule.n == of_any : rule.call == call && rule.n == of_call) {
      return rule.fault;
    }
  }
  return {};
}

} // namespace musa_emulator::mccl
