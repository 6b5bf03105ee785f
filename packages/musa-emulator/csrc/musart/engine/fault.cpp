// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/fault.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <vector>

#include "engine/error.h"

namespace musa_emulator {
namespace {

struct Rule {
  const ApiEntry* entry; // null: any entry point
  uint64_t remaining;
  musaError_t code;
};

// The last lock in the lock order: a call checks the rules before it acquires any other lock.
struct Rules {
  std::mutex mutex;
  std::vector<Rule> list;
};

Rules& rules() {
  static Rules* instance = new Rules;
  return *instance;
}

void update_gate(const Rules& rules) {
  if (rules.list.empty()) {
    gate.fetch_and(~uint32_t{kGateFaults});
  } else {
    gate.fetch_or(kGateFaults);
  }
}

} // namespace

void add_fault(const ApiEntry* entry, uint64_t n, musaError_t code) {
  std::lock_guard lock(rules().mutex);
  rules().list.push_back({entry, std::max<uint64_t>(n, 1), code});
  update_gate(rules());
}

void clear_faults() {
  std::lock_guard lock(rules().mutex);
  rules().list.clear();
  update_gate(rules());
}

bool fault_pending() {
  std::lock_guard lock(rules().mutex);
  return std::any_of(rules().list.begin(), rules().list.end(), [](const Rule& rule) { return rule.entry == nullptr; });
}

musaError_t next_fault(const ApiEntry& entry) {
  std::lock_guard lock(rules().mutex);
  musaError_t code = musaSuccess;
  auto& list = rules().list;
  for (Rule& rule : list) {
    if ((rule.entry == nullptr || rule.entry == &entry) && --rule.remaining == 0) {
      code = rule.code;
    }
  }
  if (code != musaSuccess) {
    std::erase_if(list, [](const Rule& rule) { return rule.remaining == 0; });
    update_gate(rules());
  }
  return code;
}

std::string parse_faults(const std::string& specification) {
  std::vector<Rule> parsed;
  size_t begin = 0;
  while (begin < specification.size()) {
    size_t end = specification.find(';', begin);
    end = end == std::string::npos ? specification.size() : end;
    const std::string item = specification.substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) {
      continue;
    }
    const size_t at = item.find('@');
    const size_t equals = item.find('=');
    if (equals == std::string::npos || (at != std::string::npos && at > equals)) {
      return "\"" + item + "\" is not of the form api@n=error, such as musaMalloc@3=musaErrorMemoryAllocation";
    }
    const std::string api = item.substr(0, std::min(at, equals));
    const ApiEntry* entry = api == "*" ? nullptr : find_api(api.c_str());
    if (entry == nullptr && api != "*") {
      return "\"" + api + "\" is not an entry point of the runtime (* matches any)";
    }
    uint64_t n = 1;
    if (at != std::string::npos) {
      const char* first = item.data() + at + 1;
      const char* last = item.data() + equals;
      const auto [stop, code] = std::from_chars(first, last, n);
      if (code != std::errc() || stop != last || n == 0) {
        return "\"" + std::string(first, last) + "\" is not a call number; the first call is 1";
      }
    }
    musaError_t code = musaSuccess;
    if (!error_from_name(item.substr(equals + 1).c_str(), &code) || code == musaSuccess) {
      return "\"" + item.substr(equals + 1) + "\" is not the name of an error, such as musaErrorMemoryAllocation";
    }
    parsed.push_back({entry, n, code});
  }
  for (const Rule& rule : parsed) {
    add_fault(rule.entry, rule.remaining, rule.code);
  }
  return {};
}

} // namespace musa_emulator
