// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <registry/op_policy.h>

#include <c10/musa/MUSACapabilities.h>
#include <c10/util/Exception.h>
#include <host_copy/fallback.h>

#include <algorithm>
#include <mutex>
#include <numeric>

namespace musa_runtime {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= text.size()) {
    const size_t end = std::min(text.find(separator, start), text.size());
    std::string part = text.substr(start, end - start);
    const size_t first = part.find_first_not_of(" \t");
    const size_t last = part.find_last_not_of(" \t");
    parts.push_back(first == std::string::npos ? "" : part.substr(first, last - first + 1));
    start = end + 1;
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ",") + part;
  }
  return text;
}

struct Ranks {
  std::mutex mutex; // guards `of`; a leaf lock
  // Copying every operand costs more than any device kernel, hence the last rank.
  std::map<std::string, int> of{{"host", 350}, {"runtime", 400}, {"host-copy", 500}};
};

// Where the SDK's devices compute on the host themselves: before packs of kernels that take such devices longer.
constexpr int kRankOfPreferredHost = 200;

Ranks& ranks() {
  static Ranks& instance = *new Ranks(); // packs declare themselves from static initialisers
  return instance;
}

// Returns indices of `offers`, the lowest rank first; equal ranks in order of names.
std::vector<int> default_order(const std::vector<std::string>& offers) {
  std::vector<std::pair<int, std::string>> keys;
  {
    const bool prefers_host = c10::musa::computes_on_host();
    std::lock_guard<std::mutex> lock(ranks().mutex);
    for (const std::string& offer : offers) {
      const auto found = ranks().of.find(offer);
      const int rank = found == ranks().of.end() ? kDefaultRank : found->second;
      keys.emplace_back(prefers_host && offer == "host" ? kRankOfPreferredHost : rank, offer);
    }
  }
  std::vector<int> order(offers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  return order;
}

// Returns indices of `offers` in the order of `providers`, then the others as in `otherwise`. Offers after the last resort are
// left out, because it serves every call.
std::vector<int> measured_order(
    const std::vector<std::string>& providers, const std::vector<std::string>& offers,
    const std::vector<int>& otherwise, const std::string& last_resort) {
  std::vector<int> order;
  for (const std::string& provider : providers) {
    const auto at = std::find(offers.begin(), offers.end(), provider);
    if (at != offers.end()) {
      order.push_back(static_cast<int>(at - offers.begin()));
    } else if (provider == last_resort) {
      return order;
    }
  }
  for (const int index : otherwise) {
    if (std::find(order.begin(), order.end(), index) == order.end()) {
      order.push_back(index);
    }
  }
  return order;
}

std::vector<std::string> provider_names(std::vector<std::string> names) {
  std::transform(names.begin(), names.end(), names.begin(), provider_name);
  return names;
}

} // namespace

std::string provider_name(const std::string& name) {
  return name == "native" ? "host" : name == "cpu" ? "host-copy" : name;
}

void set_provider_rank(const std::string& provider, int rank) {
  std::lock_guard<std::mutex> lock(ranks().mutex);
  ranks().of[provider] = rank;
}

OpPolicy OpPolicy::parse(const std::string& spec, const std::string& source) {
  OpPolicy policy;
  for (const std::string& item : split(spec, ';')) {
    if (item.empty()) {
      continue;
    }
    const size_t equals = item.find('=');
    const std::vector<std::string> providers =
        provider_names(split(equals == std::string::npos ? item : item.substr(equals + 1), ','));
    const bool complete =
        std::none_of(providers.begin(), providers.end(), [](const std::string& name) { return name.empty(); });
    TORCH_CHECK_VALUE(
        complete && equals != 0, source, ": cannot read '", item,
        "'. Expected providers in order, like 'runtime,host', or an operator and its "
        "providers, like 'aten::mm=host'; items are separated by ';'.");
    if (equals == std::string::npos) {
      TORCH_CHECK_VALUE(
          policy.order_.providers.empty(), source, ": two orders are given, '", join(policy.order_.providers),
          "' and '", item, "'.");
      policy.order_ = {providers, source};
      continue;
    }
    std::string op = item.substr(0, equals);
    TORCH_CHECK_VALUE(
        op.find("::") != std::string::npos, source, ": '", op, "' in '", item,
        "' is no operator name. Write it with its namespace, like 'aten::mm' or 'aten::add.Tensor'.");
    policy.pin(op, providers, source);
  }
  return policy;
}

void OpPolicy::pin(const std::string& op, const std::vector<std::string>& providers, const std::string& source) {
  TORCH_CHECK_VALUE(!providers.empty(), "No provider is given for ", op, ".");
  pins_[op] = {provider_names(providers), source};
}

void OpPolicy::expand(const std::function<std::vector<std::string>(const std::string&)>& matching) {
  std::map<std::string, Rule> expanded;
  for (const auto& [op, rule] : pins_) {
    if (op.find('*') != std::string::npos) {
      for (const std::string& match : matching(op)) {
        expanded[match] = rule;
      }
    }
  }
  for (const auto& [op, rule] : pins_) {
    if (op.find('*') == std::string::npos) {
      expanded[op] = rule;
    }
  }
  pins_ = std::move(expanded);
}

std::vector<std::string> OpPolicy::pinned_ops() const {
  std::vector<std::string> ops;
  for (const auto& [op, rule] : pins_) {
    ops.push_back(op);
  }
  return ops;
}

std::vector<std::pair<std::string, std::string>> OpPolicy::mentioned() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& provider : order_.providers) {
    pairs.emplace_back(join(order_.providers), provider);
  }
  for (const auto& [op, rule] : pins_) {
    for (const std::string& provider : rule.providers) {
      pairs.emplace_back(op + "=" + join(rule.providers), provider);
    }
  }
  return pairs;
}

OpPolicy::Ranking OpPolicy::rank(
    const std::string& op, const std::vector<std::string>& offers, const MeasuredOrders& measured) const {
  Ranking ranking;
  const auto pin = pins_.find(op);
  ranking.pinned = pin != pins_.end();
  ranking.last_resort = has_host() ? "host" : "host-copy";
  if (!ranking.pinned && order_.providers.empty()) {
    ranking.order = default_order(offers);
    const auto found = measured.by_op.find(op);
    if (found != measured.by_op.end()) {
      ranking.order = measured_order(found->second, offers, ranking.order, ranking.last_resort);
    }
    std::vector<std::string> names;
    for (const int index : ranking.order) {
      names.push_back(offers[index]);
    }
    if (found != measured.by_op.end()) {
      ranking.origin = "file";
      ranking.reason = "measured order of " + measured.file + ": " + join(found->second);
      return ranking;
    }
    ranking.origin = "default";
    ranking.reason = "default order" +
        std::string(c10::musa::computes_on_host() ? " for a device that computes on the host: " : ": ") + join(names);
    return ranking;
  }
  const auto& [order, source] = ranking.pinned ? pin->second : order_;
  ranking.origin = source;
  for (const std::string& provider : order) {
    const auto at = std::find(offers.begin(), offers.end(), provider);
    if (at != offers.end()) {
      ranking.order.push_back(static_cast<int>(at - offers.begin()));
    } else if (provider == "host-copy" || (provider == "host" && ranking.pinned)) {
      // Serves every operator, so providers ranked after it are never reached.
      ranking.last_resort = provider;
      break;
    }
  }
  // For some operators (convolution, RNN cells) the runtime's compositions are the only implementation, so they are reached
  // even if the order does not name them.
  const auto runtime = std::find(offers.begin(), offers.end(), "runtime");
  if (runtime != offers.end()) {
    const int index = static_cast<int>(runtime - offers.begin());
    if (std::find(ranking.order.begin(), ranking.order.end(), index) == ranking.order.end()) {
      ranking.order.push_back(index);
    }
  }
  ranking.reason = (ranking.pinned ? "pinned: " : "order set by the user: ") + join(order);
  return ranking;
}

} // namespace musa_runtime
