// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/hooks.h"

#include <cuda_runtime_api.h>
#include <engine/loss.h>
#include <musa_emulator.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace musa_cuda {

std::atomic<bool> faults_are_set{false};
std::atomic<bool> faults_were_set{false};
std::atomic<bool> environment_is_read{false};

namespace {

struct Rule {
  const Entry* entry; // null: any but queries
  uint64_t remaining;
  int code;
};

struct State {
  std::mutex mutex;
  std::vector<Entry*> entries;
  std::vector<Rule> rules;
  int lost = 0; // by a fault
  std::map<std::pair<Kind, uint64_t>, std::pair<int, size_t>> memory; // handle -> device, bytes
  std::set<uint64_t> live[3]; // streams, events, graphs
  std::map<uint64_t, std::vector<std::shared_ptr<void>>> kept; // with graphs
};

State& state() {
  static State* const instance = new State; // outlives the destructors of other libraries
  return *instance;
}

Entry* find(const char* name) {
  if (name == nullptr) {
    return nullptr;
  }
  const auto& entries = state().entries;
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](Entry* e) { return !std::strcmp(e->name, name); });
  return found != entries.end() ? *found : nullptr;
}

// The code of an error of the runtime by its name, 0 if there is none.
int error_of(const std::string& name) {
#define MUSA_CUDA_NAME(code) \
  if (name == #code) { \
    return code; \
  }
#include "musart_errors.inc"
#undef MUSA_CUDA_NAME
  return 0;
}

void update() {
  faults_are_set = !state().rules.empty() || state().lost != 0;
  faults_were_set = faults_were_set || faults_are_set;
}

template <class F>
size_t sum(const F& amount) {
  const std::lock_guard lock(state().mutex);
  size_t total = 0;
  for (const auto& [key, value] : state().memory) {
    total += amount(key.first, value.first, value.second);
  }
  return total;
}

// MUSA_EMULATOR_FAIL, as the emulator reads it: "api@n=error;...", for example musaMalloc@3=musaErrorMemoryAllocation, with *
// for any entry point. A rule that is not of this form ends the process: a test that sets it would pass for nothing.
void read_faults(const std::string& rules) {
  std::istringstream all(rules);
  for (std::string rule; std::getline(all, rule, ';');) {
    static const std::regex form(R"((\*|\w+)(?:@(\d+))?=(\w+))");
    std::smatch match;
    const bool formed = std::regex_match(rule, match, form);
    const int code = formed ? error_of(match[3].str()) : 0;
    Entry* const entry = formed ? find(match[1].str().c_str()) : nullptr;
    if (code == 0 || (entry == nullptr && match[1] != "*")) {
      std::fprintf(
          stderr,
          "musa-cuda: MUSA_EMULATOR_FAIL has the rule \"%s\", which is not of the form api@n=error.\n"
          "Fix: unset MUSA_EMULATOR_FAIL, or write for example musaMalloc@3=musaErrorMemoryAllocation\n",
          rule.c_str());
      std::abort();
    }
    const std::lock_guard lock(state().mutex);
    state().rules.push_back({entry, match[2].matched ? std::stoull(match[2].str()) : 1, code});
    update();
  }
}

void copy_setting(const char* from, const char* to) {
  if (const char* value = std::getenv(from)) {
    setenv(to, value, 1);
  }
}

} // namespace

Registration::Registration(Entry* const* entries, size_t count) {
  const std::lock_guard lock(state().mutex);
  state().entries.insert(state().entries.end(), entries, entries + count);
}

int& injected_error() {
  thread_local int error = 0;
  return error;
}

int next_fault(const Entry& entry) {
  const std::lock_guard lock(state().mutex);
  int code = 0;
  for (Rule& rule : state().rules) {
    if ((rule.entry == nullptr || rule.entry == &entry) && --rule.remaining == 0) {
      code = rule.code;
    }
  }
  if (code != 0) {
    std::erase_if(state().rules, [](const Rule& rule) { return rule.remaining == 0; });
    if (musa_emulator::loses_device(code)) {
      state().lost = code;
    }
    update();
  }
  return code != 0 ? code : state().lost;
}

void read_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    copy_setting("MUSA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES");
    copy_setting("MUSA_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING");
    if (const char* faults = std::getenv("MUSA_EMULATOR_FAIL")) {
      read_faults(faults);
    }
    environment_is_read.store(true, std::memory_order_release);
  });
}

void count_created(Kind kind, uint64_t handle) {
  const std::lock_guard lock(state().mutex);
  state().live[static_cast<int>(kind)].insert(handle);
}
void count_destroyed(Kind kind, uint64_t handle) {
  decltype(State::kept)::node_type last; // destroyed without the mutex
  const std::lock_guard lock(state().mutex);
  state().live[static_cast<int>(kind)].erase(handle);
  if (kind == Kind::Graphs) {
    last = state().kept.extract(handle);
  }
}
void keep_with_graph(uint64_t graph, std::shared_ptr<void> object) {
  const std::lock_guard lock(state().mutex);
  state().kept[graph].push_back(std::move(object));
}
void extend_graph(uint64_t graph, uint64_t by) {
  const std::lock_guard lock(state().mutex);
  if (const auto found = state().kept.find(by); found != state().kept.end()) {
    auto& own = state().kept[graph];
    own.insert(own.end(), found->second.begin(), found->second.end());
  }
}
void count_allocated(Kind kind, uint64_t handle, size_t bytes) {
  int device = 0;
  if (kind != Kind::Host) {
    cudaGetDevice(&device);
  }
  const std::lock_guard lock(state().mutex);
  state().memory[{kind, handle}] = {device, bytes};
}
void count_freed(Kind kind, uint64_t handle) {
  const std::lock_guard lock(state().mutex);
  state().memory.erase({kind, handle});
}

} // namespace musa_cuda

using namespace musa_cuda;

// ---- musa_emulator.h, as far as it is meant for tests of any SDK: exported by libmusart, which calls these. ----------
extern "C" {
MUSA_CUDA_EXPORT int musa_cuda_fail(const char* name, unsigned long long n, int code) {
  Entry* const entry = find(name);
  if (n == 0 || code == 0 || (name != nullptr && entry == nullptr)) {
    return musaErrorInvalidValue;
  }
  const std::lock_guard lock(state().mutex);
  state().rules.push_back({entry, n, code});
  update();
  return musaSuccess;
}
MUSA_CUDA_EXPORT int musa_cuda_fault_pending() {
  const std::lock_guard lock(state().mutex);
  return std::any_of(state().rules.begin(), state().rules.end(), [](const Rule& r) { return r.entry == nullptr; });
}
MUSA_CUDA_EXPORT void musa_cuda_clear_faults(bool lost_devices_too) {
  const std::lock_guard lock(state().mutex);
  state().rules.clear();
  if (lost_devices_too) {
    state().lost = 0;
  }
  update();
}
MUSA_CUDA_EXPORT unsigned long long musa_cuda_calls(const char* name) {
  if (name != nullptr) {
    const Entry* const entry = find(name);
    return entry != nullptr ? entry->calls.load() : 0;
  }
  unsigned long long total = 0;
  for (const Entry* entry : state().entries) {
    total += entry->kind != kQuery ? entry->calls.load() : 0;
  }
  return total;
}
MUSA_CUDA_EXPORT size_t musa_cuda_live(Kind kind) {
  const std::lock_guard lock(state().mutex);
  return state().live[static_cast<int>(kind)].size();
}
// Streams of the process, the default one among them, that have work to do.
MUSA_CUDA_EXPORT size_t musa_cuda_busy_streams() {
  std::vector<uint64_t> streams{0};
  {
    const std::lock_guard lock(state().mutex);
    const auto& created = state().live[static_cast<int>(Kind::Streams)];
    streams.insert(streams.end(), created.begin(), created.end());
  }
  return std::count_if(streams.begin(), streams.end(), [](uint64_t stream) {
    return cudaStreamQuery(reinterpret_cast<cudaStream_t>(stream)) == cudaErrorNotReady;
  });
}
// device < 0: the host's.
MUSA_CUDA_EXPORT size_t musa_cuda_memory(int device, bool bytes) {
  return sum([&](Kind kind, int of, size_t size) -> size_t {
    const bool counts = device < 0 ? kind == Kind::Host : kind != Kind::Host && of == device;
    return !counts ? 0 : bytes ? size : 1;
  });
}
}
