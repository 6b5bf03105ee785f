// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace musa_runtime {

// Returns the current name of a provider: "native" and "cpu" are earlier names of "host" and "host-copy".
C10_MUSA_API std::string provider_name(const std::string& name);

// The rank of a provider without a rank of its own.
constexpr int kDefaultRank = 150;

// Ranks give the default order of providers, the lowest first. The runtime's own are 400 (runtime) and 500 (host-copy);
// that of host, 350, is 200 where the SDK's devices compute on the host. A rank applies to operators that are installed after it is set.
C10_MUSA_API void set_provider_rank(const std::string& provider, int rank);

// Orders of providers by operator that a file holds, as `python -m torch_musa tune` measures them. A policy has precedence.
struct MeasuredOrders {
  std::string file;
  // Providers that an order lacks follow in the default order; those that the process lacks are left out.
  std::map<std::string, std::vector<std::string>> by_op;
};

// The order of providers for all operators, and orders pinned for single operators.
class OpPolicy {
 public:
  struct Ranking {
    std::vector<int> order; // indices into the offers, best first
    std::string last_resort; // "host" or "host-copy": the boxed fallback behind all candidates
    std::string reason;
    std::string origin; // "default", "file", or the source of the rule
    bool pinned = false;
  };

  // Items separated by ';': "mudnn,host" or "aten::mm=ported,host". `source` names the input in errors and rankings.
  static OpPolicy parse(const std::string& spec, const std::string& source);

  // Replaces pins whose operator is a pattern ("aten::*norm*") by pins of the matching operators; a pin by full name has
  // precedence.
  void expand(const std::function<std::vector<std::string>(const std::string&)>& matching);
  void pin(const std::string& op, const std::vector<std::string>& providers, const std::string& source);
  std::vector<std::string> pinned_ops() const;
  // (item with the current names of providers, provider) for every provider that the policy names.
  std::vector<std::pair<std::string, std::string>> mentioned() const;

  Ranking rank(const std::string& op, const std::vector<std::string>& offers, const MeasuredOrders& measured) const;

 private:
  struct Rule {
    std::vector<std::string> providers;
    std::string source;
  };

  Rule order_; // without providers: the default for the kind of device memory
  std::map<std::string, Rule> pins_;
};

} // namespace musa_runtime
