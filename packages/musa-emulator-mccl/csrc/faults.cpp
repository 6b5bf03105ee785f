// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "faults.h"

#include <algorithm>
#include <charconv>
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

template <class Number>
bool parse(const std::string& text, Number* number) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, *number);
  return error == std::errc() && end == last && !text.empty();
}

// Whether a name is that of a collective, or empty.
bool is_call(const std::string& name) {
  constexpr Kind kKinds[] = {Kind::AllReduce,     Kind::Reduce, Kind::Broadcast, Kind::AllGather,
                             Kind::ReduceScatter, Kind::Send,   Kind::Recv};
  return name.empty() || std::any_of(std::begin(kKinds), std::end(kKinds), [&](Kind kind) {
           return name == Signature{kind, mcclInt8}.call();
         });
}

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
        problem = "MUSA_EMULATOR_MCCL_FAULT='" + std::string(value) + "' is invalid at '" + part +
            "'; expected CALL@N=ACTION with a collective or nothing, 1 or more, and delay:MS, drop, size or die, as in "
            "mcclAllReduce@3=drop. Fix: correct it, or unset MUSA_EMULATOR_MCCL_FAULT";
      }
    }
  }

  bool read(const std::string& part) {
    const size_t at = part.find('@'), equals = part.find('=');
    if (at == std::string::npos || equals == std::string::npos || equals < at) {
      return false;
    }
    Rule rule{part.substr(0, at), 0, {}};
    const std::string action = part.substr(equals + 1);
    if (!is_call(rule.call) || !parse(part.substr(at + 1, equals - at - 1), &rule.n) || rule.n == 0) {
      return false;
    }
    if (action == "drop") {
      rule.fault.action = Fault::Action::Drop;
    } else if (action == "size") {
      rule.fault.action = Fault::Action::Size;
    } else if (action == "die") {
      rule.fault.action = Fault::Action::Die;
    } else if (action.rfind("delay:", 0) == 0) {
      uint32_t milliseconds = 0;
      if (!parse(action.substr(6), &milliseconds)) {
        return false;
      }
      rule.fault = {Fault::Action::Delay, std::chrono::milliseconds(milliseconds)};
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

const std::string& problem_of_faults() { return all().problem; }

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
