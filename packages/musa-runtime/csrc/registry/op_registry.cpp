// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <registry/op_registry.h>

#include <c10/musa/MUSACapabilities.h>
#include <host_copy/fallback.h>
#include <registry/op_route.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <utility>

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

template <c10::DispatchKey key>
void call_composed(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  op.callBoxedForDispatchKey(key, *stack);
}

// torch's kernel that composes the operator from others and stays on the device; invalid if there is none.
c10::KernelFunction composed_kernel(const c10::OperatorHandle& op) {
  using Key = c10::DispatchKey;
  return op.hasKernelForDispatchKey(Key::CompositeExplicitAutograd)
      ? c10::KernelFunction::makeFromBoxedFunction<&call_composed<Key::CompositeExplicitAutograd>>()
      : op.hasKernelForDispatchKey(Key::CompositeExplicitAutogradNonFunctional)
      ? c10::KernelFunction::makeFromBoxedFunction<&call_composed<Key::CompositeExplicitAutogradNonFunctional>>()
      : op.hasKernelForDispatchKey(Key::CompositeImplicitAutograd)
      ? c10::KernelFunction::makeFromBoxedFunction<&call_composed<Key::CompositeImplicitAutograd>>()
      : c10::KernelFunction();
}

// The reason why a kernel does not fit its operator; empty if it does.
std::string misfit(const Candidate& candidate, const c10::OperatorHandle& op) {
  if (candidate.stable != nullptr) {
    return candidate.stable->misfit(candidate.provider, candidate.op, op.schema());
  }
  const detail::KernelType& type = *candidate.type;
  if (type.schema == nullptr) {
    return ""; // generated from the operators of this torch
  }
  std::optional<std::string> difference =
      c10::findSchemaDifferences(type.schema().cloneWithRealTypes(), op.schema().cloneWithRealTypes(type.symbolic));
  if (!difference.has_value()) {
    try {
      type.check_signature(op);
      return "";
    } catch (const c10::Error&) {
      difference = "The types differ from those of torch's own kernels for it.";
    }
  }
  return c10::str(
      "the pack '", candidate.provider, "' declares a kernel for ", candidate.op,
      " whose C++ signature is not the operator's. ", *difference, "\n  have: ", type.signature().name(),
      "\n  need: ", op.schema(),
      "\nLikely causes: the kernel was written for another torch; a parameter is missing or has another type.\n"
      "Fix: give the kernel the operator's parameters (torch/include/ATen/ops has their C++ types), and build the pack "
      "again: pip install --no-build-isolation --no-deps --force-reinstall <the pack's sources>");
}

// The type of the kernel that the dispatcher gets. It cannot change later, so one with a C++ signature is preferred over
// the boxed one of stable kernels: a call passed from a boxed kernel to an unboxed one would be boxed needlessly.
const detail::KernelType* registered_type(const std::vector<Candidate*>& order, const std::vector<Candidate*>& offers) {
  for (const auto* list : {&order, &offers}) {
    for (const Candidate* candidate : *list) {
      if (candidate->stable == nullptr) {
        return candidate->type;
      }
    }
  }
  return offers.empty() ? nullptr : offers.front()->type;
}

} // namespace

struct OpRegistry::State {
  struct Installed {
    Installed(const c10::OperatorHandle& op, const detail::KernelType* type) : route(op, type) {}

    OpRoute route;
    std::vector<Candidate*> chain; // in rank order; the first is what the dispatcher calls
    std::string reason;
    std::string origin;
    // No candidate is selected any more, but one was: the route exists, and calls the kernel that torch would call without
    // it.
    bool unchosen = false;
  };

  // Guards the members below. Lock order: GIL, then this, then the dispatcher's own lock. Kernels never take it.
  mutable std::mutex mutex;
  std::map<std::string, std::vector<std::unique_ptr<Candidate>>> candidates;
  std::set<std::string> known_providers{"runtime", "host-copy"};
  std::map<std::string, Installed> installed;
  std::vector<PackFailure> late_failures;
  OpPolicy policy;
  OpPolicy from_environment;
  MeasuredOrders measured;
  bool active = false;
  bool awaits_packs = false;
  bool read_environment = false;

  bool fits(Candidate& candidate, const c10::OperatorHandle& op);

  void install_op(const std::string& op);
  void install_all();
  bool pause();
  void replace_policy(OpPolicy wanted);
  void check_providers(const OpPolicy& wanted) const;
  // The operators that match a pattern and whose provider a policy can choose; raises if there are none.
  std::vector<std::string> choosable(const std::string& pattern) const;
  // Parses a specification: expands patterns and checks names.
  OpPolicy read_policy(const std::string& spec, const std::string& source) const;
  // The reason why a policy cannot choose this operator's provider; empty if it can.
  std::string why_fixed(const std::string& op) const;
  std::string joined_providers() const;
  OpInfo describe(const c10::OperatorHandle& handle) const;
};

OpRegistry::OpRegistry() : state_(*new State()) {}

OpRegistry& OpRegistry::get() {
  static OpRegistry& instance = *new OpRegistry();
  return instance;
}

bool OpRegistry::State::fits(Candidate& candidate, const c10::OperatorHandle& op) {
  if (candidate.fit == Candidate::Fit::Unknown) {
    const std::string reason = misfit(candidate, op);
    candidate.fit = reason.empty() ? Candidate::Fit::Yes : Candidate::Fit::No;
    if (!reason.empty()) {
      late_failures.push_back({candidate.provider, candidate.op, reason});
    }
  }
  return candidate.fit == Candidate::Fit::Yes;
}

void OpRegistry::State::install_op(const std::string& op) {
  const auto handle = c10::Dispatcher::singleton().findSchema(parse_name(op));
  if (!handle.has_value()) {
    return; // declared for an operator that this torch does not have
  }
  const auto found = candidates.find(op);
  std::vector<Candidate*> offers;
  if (found != candidates.end()) {
    for (const auto& candidate : found->second) {
      if (fits(*candidate, *handle) && (!candidate->needs_host_addressable || c10::musa::host_addressable())) {
        offers.push_back(candidate.get());
      }
    }
  }
  std::vector<std::string> names;
  for (const Candidate* offer : offers) {
    names.push_back(offer->provider);
  }
  const OpPolicy::Ranking ranking = policy.rank(op, names, measured);

  const bool float64 = c10::musa::computes_float64();
  const auto without_float64 = [float64](const Candidate& candidate) {
    return !float64 && !candidate.needs_host_addressable && candidate.provider != "runtime";
  };
  std::vector<Candidate*> order;
  bool ends_unconditionally = false;
  for (const int index : ranking.order) {
    order.push_back(offers[index]);
    if (!offers[index]->conditional && !without_float64(*offers[index])) {
      ends_unconditionally = true;
      break;
    }
  }
  // If a candidate was declared but none may serve, the boxed kernel is registered instead: torch's composed form would
  // reach the fallback in several steps, each with its own copies. Lists of tensors (foreach) are left to torch's composed
  // kernel, which calls one operator per tensor of a list, and each stays on the device.
  const bool is_foreach = op.rfind("aten::_foreach_", 0) == 0;
  const bool unchosen = order.empty() && !ranking.pinned && (found == candidates.end() || is_foreach);
  auto at = installed.find(op);
  if (unchosen && at == installed.end()) {
    return; // the backend fallback, or a composite kernel of torch, serves it
  }

  Chain chain;
  chain.last_name = ranking.last_resort;
  if (unchosen || (is_foreach && !ranking.pinned)) {
    chain.last = composed_kernel(*handle);
    chain.last_name = chain.last.isValid() ? "composed" : ranking.last_resort;
  }
  // After a host kernel, the boxed one would call the same kernel of torch again.
  const bool same = !order.empty() && order.back()->needs_host_addressable && chain.last_name == "host";
  if (ends_unconditionally || same) {
    chain.last = c10::KernelFunction();
    chain.last_name.clear();
  } else if (!chain.last.isValid()) {
    chain.last = fallback_kernel(ranking.last_resort);
  }
  for (const Candidate* candidate : order) {
    if (candidate->stable != nullptr) {
      candidate->stable->bind(candidate->provider, *handle);
    }
    chain.members.push_back(
        {candidate->type, candidate->kernel, candidate->served, candidate->calls, candidate->provider.c_str(),
         candidate->stable.get(), without_float64(*candidate)});
  }

  if (at == installed.end()) {
    at = installed.try_emplace(op, *handle, registered_type(order, offers)).first;
  }
  Installed& now = at->second;
  now.route.set(chain);
  now.chain = std::move(order);
  now.reason = ranking.reason;
  now.origin = ranking.origin;
  now.unchosen = unchosen;
}

void OpRegistry::State::install_all() {
  set_default_fallback(policy.rank("", {}, measured).last_resort);
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
    if (!is_stable_kernel(name) && matches(pattern, op) && why_fixed(op).empty()) {
      ops.push_back(std::move(op));
    }
  }
  TORCH_CHECK_VALUE(
      !ops.empty(), "No operator whose provider can be chosen matches '", pattern,
      "'. Write it as 'aten::add.Tensor'; '*' stands for any text. Fix: python -m torch_musa ops '", pattern, "*'");
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
        known_providers.count(provider) != 0, "Unknown provider '", provider, "' in '", where,
        "': the providers of this process are ", joined_providers(),
        ".\nLikely causes: a misspelling, or the pack is not installed or failed to load."
        "\nFix: python -m torch_musa packs");
    TORCH_CHECK_VALUE(
        provider != "host" || where.find('=') == std::string::npos || has_host(), "Provider 'host' in '", where,
        "' runs torch's CPU kernels in the device's memory, which needs the pack musa-ops-host and a device whose memory the "
        "host can address; ",
        c10::musa::host_addressable() ? "the pack is not loaded" : "the host cannot address this one's",
        ".\nFix: use 'host-copy' instead.");
  }
  for (const std::string& op : wanted.pinned_ops()) {
    const std::string reason = why_fixed(op);
    TORCH_CHECK_VALUE(
        reason.empty(), "The provider of '", op, "' cannot be chosen: ", reason,
        ".\nFix: python -m torch_musa ops PATTERN lists the operators and their providers.");
  }
}

void OpRegistry::add(const std::string& provider, std::vector<std::unique_ptr<Candidate>> added) {
  std::lock_guard<std::mutex> lock(state_.mutex);
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& candidate : added) {
    const std::string& op = candidate->op;
    if (!seen.emplace(candidate->provider, op).second) {
      throw PackError(
          op,
          c10::str(
              "the pack '", provider, "' declares ", op, " twice for the provider '", candidate->provider,
              "'.\nFix: remove one of its two pack.impl(\"", op, "\", ...) and build the pack again."));
    }
    const auto offers = state_.candidates.find(op);
    if (offers != state_.candidates.end()) {
      for (const auto& offer : offers->second) {
        if (offer->provider == candidate->provider) {
          throw PackError(
              op,
              c10::str(
                  "the pack '", provider, "' declares ", op,
                  ", and a library that was loaded before declares it for the "
                  "same provider, '",
                  candidate->provider,
                  "'.\nLikely causes: two packs have one name; two copies of a pack are loaded.\nFix: remove one of them, or give one another name in MUSA_OP_PACK and build it again."));
        }
      }
    }
    if (const auto handle = c10::Dispatcher::singleton().findSchema(parse_name(op))) {
      const std::string reason = misfit(*candidate, *handle);
      if (!reason.empty()) {
        throw PackError(op, reason);
      }
      candidate->fit = Candidate::Fit::Yes;
    }
  }
  state_.known_providers.insert(provider);
  for (auto& candidate : added) {
    state_.known_providers.insert(candidate->provider);
    const std::string op = candidate->op;
    state_.candidates[op].push_back(std::move(candidate));
    if (state_.active) {
      state_.install_op(op);
    }
  }
  if (state_.active) {
    set_default_fallback(state_.policy.rank("", {}, state_.measured).last_resort);
  }
}

std::vector<PackFailure> OpRegistry::check_late_operators() {
  std::lock_guard<std::mutex> lock(state_.mutex);
  for (const auto& [op, offers] : state_.candidates) {
    for (const auto& candidate : offers) {
      if (candidate->fit == Candidate::Fit::Unknown) {
        if (const auto handle = c10::Dispatcher::singleton().findSchema(parse_name(op))) {
          state_.fits(*candidate, *handle);
        }
      }
    }
  }
  return std::exchange(state_.late_failures, {});
}

void OpRegistry::install() {
  std::lock_guard<std::mutex> lock(state_.mutex);
  if (state_.active) {
    return;
  }
  if (!state_.awaits_packs && !state_.read_environment) {
    const char* spec = std::getenv("TORCH_MUSA_OPS");
    if (spec != nullptr && *spec != '\0') {
      state_.from_environment = state_.read_policy(spec, "TORCH_MUSA_OPS");
    }
    state_.policy = state_.from_environment;
    state_.read_environment = true;
  }
  install_fallbacks();
  state_.active = true;
  state_.install_all();
}

bool OpRegistry::pause() {
  std::lock_guard<std::mutex> lock(state_.mutex);
  return state_.pause();
}

void OpRegistry::await_packs() {
  std::lock_guard<std::mutex> lock(state_.mutex);
  state_.awaits_packs = true;
  state_.pause();
}

void OpRegistry::packs_are_loaded() {
  std::lock_guard<std::mutex> lock(state_.mutex);
  if (state_.awaits_packs) {
    state_.awaits_packs = false;
    state_.pause();
  }
}

bool OpRegistry::State::pause() {
  if (!active) {
    return false;
  }
  withdraw_fallbacks_of_layouts();
  active = false;
  return true;
}

void OpRegistry::set_policy(const std::string& spec) {
  std::lock_guard<std::mutex> lock(state_.mutex);
  state_.replace_policy(state_.read_policy(spec, "set_policy"));
}

void OpRegistry::reset_policy() {
  std::lock_guard<std::mutex> lock(state_.mutex);
  state_.replace_policy(state_.from_environment);
}

void OpRegistry::set_measured(MeasuredOrders measured) {
  std::lock_guard<std::mutex> lock(state_.mutex);
  state_.measured = std::move(measured);
  if (state_.active) {
    state_.install_all();
  }
}

void OpRegistry::State::replace_policy(OpPolicy wanted) {
  const std::vector<std::string> before = policy.pinned_ops();
  policy = std::move(wanted);
  if (active) {
    for (const std::string& op : before) {
      install_op(op);
    }
    install_all();
  }
}

void OpRegistry::prefer(const std::string& pattern, const std::vector<std::string>& providers) {
  std::lock_guard<std::mutex> lock(state_.mutex);
  OpPolicy wanted = state_.policy;
  const bool is_pattern = pattern.find('*') != std::string::npos;
  const std::vector<std::string> ops = is_pattern ? state_.choosable(pattern) : std::vector<std::string>{pattern};
  for (const std::string& op : ops) {
    wanted.pin(op, providers, "prefer");
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

std::map<std::string, size_t> OpRegistry::declared() const {
  std::map<std::string, size_t> counts;
  std::lock_guard<std::mutex> lock(state_.mutex);
  for (const auto& [op, offers] : state_.candidates) {
    if (c10::Dispatcher::singleton().findSchema(parse_name(op)).has_value()) {
      for (const auto& candidate : offers) {
        ++counts[candidate->provider];
      }
    }
  }
  return counts;
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
  const FallbackCounts boxed = fallback_counts(info.op);
  const auto host = std::find_if(
      info.candidates.begin(), info.candidates.end(), [](const CandidateInfo& c) { return c.provider == "host"; });
  if (host != info.candidates.end()) {
    host->calls += boxed.host_calls; // some came through the fallback, while the order of providers changed
  } else if (has_host()) {
    info.candidates.push_back({"host", false, boxed.host_calls, -1});
  }
  info.candidates.push_back({"host-copy", false, boxed.copy_calls, -1});
  info.calls += boxed.copy_calls + boxed.host_calls;

  if (now != installed.end() && !now->second.unchosen) {
    info.provider =
        now->second.chain.empty() ? policy.rank(info.op, {}, measured).last_resort : now->second.chain[0]->provider;
    info.reason = now->second.reason;
    info.origin = now->second.origin;
  } else if (now == installed.end() && handle.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
    info.provider = "runtime";
    info.reason = "part of the runtime: allocation, views, copies";
  } else if (
      handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
      handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
      handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    info.provider = "composite";
    info.reason = "torch composes it from other operators, each served on its own";
  } else if (handle.hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
    info.provider = policy.rank(info.op, {}, measured).last_resort;
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
      handle.has_value(), "Unknown operator '", op, "'. Write it as 'aten::add.Tensor'. Fix: python -m torch_musa ops");
  std::lock_guard<std::mutex> lock(state_.mutex);
  return state_.describe(*handle);
}

std::vector<OpInfo> OpRegistry::table() const {
  std::vector<OpInfo> rows;
  std::lock_guard<std::mutex> lock(state_.mutex);
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (handle.has_value() && !is_stable_kernel(name)) {
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

} // namespace musa_runtime
