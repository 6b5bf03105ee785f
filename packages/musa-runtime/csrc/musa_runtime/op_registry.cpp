// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/op_registry.h>

#include <c10/musa/MUSAFunctions.h>
#include <musa_runtime/fallback.h>
#include <musa_runtime/op_policy.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

namespace musa_runtime {
namespace {

c10::OperatorName parse_name(const std::string& op) {
  const size_t space = op.find("::");
  const size_t dot = op.find('.', space == std::string::npos ? 0 : space);
  return dot == std::string::npos ? c10::OperatorName(op, "")
                                  : c10::OperatorName(op.substr(0, dot), op.substr(dot + 1));
}

// '*' matches any run of characters.
bool matches(const std::string& pattern, const std::string& text) {
  size_t p = 0, t = 0, star = std::string::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

void call_composed(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
}

struct Installed {
  std::vector<Candidate*> chain; // in rank order; the first is what the dispatcher calls
  std::string reason;
  std::optional<c10::RegistrationHandleRAII> registration;
};

} // namespace

struct OpRegistry::State {
  // Guards everything below. Lock order: GIL, then this, then the dispatcher's own lock. Kernels never take it.
  mutable std::mutex mutex;
  std::map<std::string, std::vector<std::unique_ptr<Candidate>>> candidates;
  std::set<std::string> known_providers{"native", "runtime", "cpu", "mudnn", "ported"};
  std::map<std::string, Installed> installed;
  OpPolicy policy;
  bool active = false;

  void install_op(const std::string& op);
  void install_all();
  void check_providers(const OpPolicy& wanted) const;
  // The operators that match a pattern and whose provider a policy can choose; none is an error.
  std::vector<std::string> choosable(const std::string& pattern) const;
  // Reads a specification, patterns expanded and names checked.
  OpPolicy read_policy(const std::string& spec, const std::string& source) const;
  // Why a policy cannot choose this operator's provider; empty where it can.
  std::string why_fixed(const std::string& op) const;
  std::string joined_providers() const;
  OpInfo describe(const c10::OperatorHandle& handle) const;
};

OpRegistry::OpRegistry() : state_(*new State()) {}

OpRegistry& OpRegistry::get() {
  static OpRegistry& instance = *new OpRegistry();
  return instance;
}

void OpRegistry::State::install_op(const std::string& op) {
  const auto found = candidates.find(op);
  std::vector<Candidate*> offers;
  if (found != candidates.end()) {
    for (const auto& candidate : found->second) {
      if (!candidate->needs_host_addressable || c10::musa::host_addressable()) {
        offers.push_back(candidate.get());
      }
    }
  }
  std::vector<std::string> names;
  for (const Candidate* offer : offers) {
    names.push_back(offer->provider);
  }
  const OpPolicy::Ranking ranking = policy.rank(op, names);

  const auto handle = c10::Dispatcher::singleton().findSchema(parse_name(op));
  if (!handle.has_value()) {
    return; // declared for an operator that this torch does not have; `doctor` lists it
  }

  Installed next;
  next.reason = ranking.reason;
  // torch's composed kernel calls one operator per tensor of a list, and each stays on the device.
  const bool composes = !ranking.pinned && op.rfind("aten::_foreach_", 0) == 0 &&
      handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
  c10::KernelFunction last = composes ? c10::KernelFunction::makeFromBoxedFunction<&call_composed>()
                                      : fallback_kernel(ranking.last_resort);
  bool ends_unconditionally = false;
  for (const int index : ranking.order) {
    next.chain.push_back(offers[index]);
    if (!offers[index]->conditional) {
      ends_unconditionally = true;
      break;
    }
  }
  // Unregister before registering: the dispatcher warns when a kernel is overwritten.
  installed.erase(op);
  // Where a candidate was declared but none may serve, the boxed kernel must stand in its place: torch's composed form would
  // reach the fallback in several steps, each with copies of its own. Lists of tensors (foreach) are left to torch's composed
  // kernel.
  const bool stands_in = found != candidates.end() && op.rfind("aten::_foreach_", 0) != 0;
  if (next.chain.empty() && !ranking.pinned && !stands_in) {
    return; // the backend fallback, or a composite kernel of torch, serves it
  }
  c10::KernelFunction kernel = last;
  for (auto it = next.chain.rbegin(); it != next.chain.rend(); ++it) {
    Candidate& candidate = **it;
    candidate.handle = std::make_unique<c10::OperatorHandle>(*handle);
    const bool is_last = it == next.chain.rbegin();
    // Behind a native kernel the boxed one would call the same kernel of torch again.
    const bool same = candidate.needs_host_addressable && ranking.last_resort == "native" && !composes;
    candidate.next = is_last && (ends_unconditionally || same) ? c10::KernelFunction() : kernel;
    kernel = candidate.make(candidate);
  }
  next.registration.emplace(c10::Dispatcher::singleton().registerImpl(
      handle->operator_name(),
      c10::DispatchKey::PrivateUse1,
      std::move(kernel),
      std::nullopt,
      nullptr,
      "torch_musa op registry"));
  installed.emplace(op, std::move(next));
}

void OpRegistry::State::install_all() {
  set_default_fallback(policy.rank("", {}).last_resort);
  for (const auto& [op, offers] : candidates) {
    install_op(op);
  }
  for (const std::string& op : policy.pinned_ops()) {
    if (candidates.find(op) == candidates.end()) {
      install_op(op);
    }
  }
}

std::string OpRegistry::State::why_fixed(const std::string& op) const {
  const auto handle = c10::Dispatcher::singleton().findSchema(parse_name(op));
  if (!handle.has_value()) {
    return "this torch has no such operator";
  }
  if (candidates.count(op) != 0 || installed.count(op) != 0) {
    return "";
  }
  if (handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
    return "it is part of the runtime (allocation, views, copies), which the providers themselves are built on";
  }
  const bool composed = handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
      handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
      handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
  if (composed && !handle->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
    return "torch composes it from other operators; pin those";
  }
  return "";
}

std::vector<std::string> OpRegistry::State::choosable(const std::string& pattern) const {
  std::vector<std::string> ops;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    std::string op = c10::toString(name);
    if (matches(pattern, op) && why_fixed(op).empty()) {
      ops.push_back(std::move(op));
    }
  }
  TORCH_CHECK_VALUE(
      !ops.empty(), "No operator whose provider can be chosen matches '", pattern,
      "'. Write it as 'aten::add.Tensor'; '*' stands for any text. Cure: python -m torch_musa ops '", pattern, "*'");
  return ops;
}

OpPolicy OpRegistry::State::read_policy(const std::string& spec, const std::string& source) const {
  OpPolicy wanted = OpPolicy::parse(spec, source);
  wanted.expand([this](const std::string& pattern) { return choosable(pattern); });
  check_providers(wanted);
  return wanted;
}

std::string OpRegistry::State::joined_providers() const {
  std::string text;
  for (const std::string& name : known_providers) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

void OpRegistry::State::check_providers(const OpPolicy& wanted) const {
  for (const auto& [where, provider] : wanted.mentioned()) {
    TORCH_CHECK_VALUE(
        known_providers.count(provider) != 0,
        "Unknown provider '", provider, "' in '", where, "': the providers of this process are ", joined_providers(),
        ".\nLikely causes: a misspelling, or the pack is not installed or failed to load."
        "\nCure: python -m torch_musa packs");
    TORCH_CHECK_VALUE(
        provider != "native" || where.find('=') == std::string::npos || c10::musa::host_addressable(),
        "Provider 'native' in '", where, "' runs torch's CPU kernels on device memory in place, which needs a device "
        "whose memory the host can address; this one has discrete memory.\nCure: use 'cpu' (with copies) instead.");
  }
  for (const std::string& op : wanted.pinned_ops()) {
    const std::string reason = why_fixed(op);
    TORCH_CHECK_VALUE(
        reason.empty(), "The provider of '", op, "' cannot be chosen: ", reason,
        ".\nCure: python -m torch_musa ops PATTERN lists the operators and who serves them.");
  }
}

void OpRegistry::add_provider(const std::string& provider) {
  std::lock_guard<std::mutex> lock(state_.mutex);
  state_.known_providers.insert(provider);
}

void OpRegistry::add(std::unique_ptr<Candidate> candidate) {
  std::lock_guard<std::mutex> lock(state_.mutex);
  const std::string op = candidate->op;
  state_.known_providers.insert(candidate->provider);
  auto& offers = state_.candidates[op];
  for (const auto& offer : offers) {
    TORCH_CHECK(
        offer->provider != candidate->provider, "Pack '", candidate->provider, "' declares ", op, " twice.");
  }
  offers.push_back(std::move(candidate));
  if (state_.active) {
    state_.install_op(op);
  }
}

void OpRegistry::install() {
  std::lock_guard<std::mutex> lock(state_.mutex);
  if (state_.active) {
    return;
  }
  const char* spec = std::getenv("TORCH_MUSA_OPS");
  if (spec != nullptr && *spec != '\0') {
    state_.policy = state_.read_policy(spec, "TORCH_MUSA_OPS");
  }
  install_fallbacks();
  state_.active = true;
  state_.install_all();
}

void OpRegistry::set_policy(const std::string& spec) {
  std::lock_guard<std::mutex> lock(state_.mutex);
  OpPolicy wanted = state_.read_policy(spec, "set_policy");
  std::vector<std::string> before = state_.policy.pinned_ops();
  state_.policy = std::move(wanted);
  if (state_.active) {
    for (const std::string& op : before) {
      state_.install_op(op);
    }
    state_.install_all();
  }
}

void OpRegistry::reset_policy() {
  set_policy("");
}

void OpRegistry::prefer(const std::string& pattern, const std::vector<std::string>& providers) {
  std::lock_guard<std::mutex> lock(state_.mutex);
  OpPolicy wanted = state_.policy;
  const bool is_pattern = pattern.find('*') != std::string::npos;
  const std::vector<std::string> ops = is_pattern ? state_.choosable(pattern) : std::vector<std::string>{pattern};
  for (const std::string& op : ops) {
    wanted.pin(op, providers);
  }
  state_.check_providers(wanted);
  state_.policy = std::move(wanted);
  if (state_.active) {
    for (const std::string& op : ops) {
      state_.install_op(op);
    }
  }
}

std::vector<std::string> OpRegistry::providers() const {
  std::lock_guard<std::mutex> lock(state_.mutex);
  return {state_.known_providers.begin(), state_.known_providers.end()};
}

bool OpRegistry::has(const std::string& op) const {
  return c10::Dispatcher::singleton().findSchema(parse_name(op)).has_value();
}

OpInfo OpRegistry::State::describe(const c10::OperatorHandle& handle) const {
  OpInfo info;
  info.op = c10::toString(handle.operator_name());
  info.calls = 0;
  const auto now = installed.find(info.op);
  const auto offers = candidates.find(info.op);
  if (offers != candidates.end()) {
    for (const auto& offer : offers->second) {
      int rank = -1;
      if (now != installed.end()) {
        const auto& chain = now->second.chain;
        const auto at = std::find(chain.begin(), chain.end(), offer.get());
        rank = at == chain.end() ? -1 : static_cast<int>(at - chain.begin());
      }
      const uint64_t calls = offer->calls->load(std::memory_order_relaxed);
      info.calls += calls;
      info.candidates.push_back({offer->provider, offer->conditional, calls, rank});
    }
  }
  const FallbackStatistics boxed = fallback_statistics(info.op);
  const bool addressable = c10::musa::host_addressable();
  if (addressable) {
    const bool listed = std::any_of(info.candidates.begin(), info.candidates.end(), [](const CandidateInfo& c) {
      return c.provider == "native";
    });
    if (!listed) {
      info.candidates.push_back({"native", false, boxed.native_calls, -1});
    }
  }
  info.candidates.push_back({"cpu", false, boxed.cpu_calls, -1});
  info.calls += boxed.cpu_calls + boxed.native_calls;

  if (now != installed.end()) {
    info.provider = now->second.chain.empty() ? policy.rank(info.op, {}).last_resort : now->second.chain[0]->provider;
    info.reason = now->second.reason;
  } else if (handle.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
    info.provider = "runtime";
    info.reason = "part of the runtime: allocation, views, copies";
  } else if (
      handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
      handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
      handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    info.provider = "composite";
    info.reason = "torch composes it from other operators, each served on its own";
  } else if (handle.hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
    info.provider = policy.rank(info.op, {}).last_resort;
    info.reason = "no pack serves it";
  } else {
    info.provider = "none";
    info.reason = "no pack serves it and torch has no CPU kernel for strided tensors";
  }
  return info;
}

OpInfo OpRegistry::explain(const std::string& op) const {
  const auto handle = c10::Dispatcher::singleton().findSchema(parse_name(op));
  TORCH_CHECK_VALUE(
      handle.has_value(), "Unknown operator '", op, "'. Write it as 'aten::add.Tensor'. Cure: python -m torch_musa ops");
  std::lock_guard<std::mutex> lock(state_.mutex);
  return state_.describe(*handle);
}

std::vector<OpInfo> OpRegistry::table() const {
  std::vector<OpInfo> rows;
  std::lock_guard<std::mutex> lock(state_.mutex);
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (handle.has_value()) {
      rows.push_back(state_.describe(*handle));
    }
  }
  std::sort(rows.begin(), rows.end(), [](const OpInfo& a, const OpInfo& b) { return a.op < b.op; });
  return rows;
}

std::unordered_map<const std::atomic<uint64_t>*, std::string> OpRegistry::names_by_counter() const {
  std::unordered_map<const std::atomic<uint64_t>*, std::string> names;
  std::lock_guard<std::mutex> lock(state_.mutex);
  for (const auto& [op, offers] : state_.candidates) {
    for (const auto& offer : offers) {
      names.emplace(offer->calls, op);
    }
  }
  return names;
}

OpPack::OpPack(std::string provider, bool needs_host_addressable)
    : provider_(std::move(provider)), needs_host_addressable_(needs_host_addressable) {
  OpRegistry::get().add_provider(provider_);
}

OpPack& OpPack::add(
    const char* op,
    bool conditional,
    std::function<c10::KernelFunction(Candidate&)> make) {
  auto candidate = std::make_unique<Candidate>();
  candidate->op = op;
  candidate->provider = provider_;
  candidate->conditional = conditional;
  candidate->needs_host_addressable = needs_host_addressable_;
  candidate->make = std::move(make);
  OpRegistry::get().add(std::move(candidate));
  declared_.emplace_back(op);
  return *this;
}

} // namespace musa_runtime
