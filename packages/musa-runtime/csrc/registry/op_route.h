// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <musa_runtime/op_pack.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace musa_runtime {

class StableKernel;
struct StableLink;

// A kernel as one member of a chain.
struct ChainMember {
  const detail::KernelType* type;
  void (*kernel)();
  void (*served)(); // nullptr for kernels without a predicate
  std::atomic<uint64_t>* calls;
  const char* provider;
  const StableKernel* stable = nullptr; // of kernels over torch's stable ABI; `type` is StableKernel::type()
  bool without_float64 = false; // the device computes it, and does not compute with float64

  bool operator<(const ChainMember& other) const {
    return kernel != other.kernel ? kernel < other.kernel : calls < other.calls;
  }
};

// The chain that serves an operator: its members in rank order, then a boxed kernel. `last_name` identifies `last`; it is
// empty if a call ends with the last member.
struct Chain {
  std::vector<ChainMember> members;
  std::string last_name;
  c10::KernelFunction last;
};

// The only kernel that the dispatcher gets for an operator on PrivateUse1. The dispatcher's table may not change while
// another thread calls the operator, because it copies kernels field by field. So the kernel is registered once and reads
// an atomic pointer to the head of the chain; set() replaces the chain by one store. A call in progress ends on the chain
// on which it began: chains are kept until the process ends, one for each order that was set.
class OpRoute {
 public:
  // type: the type of the registered kernel. A chain whose head has this type is called directly. nullptr for operators
  // that have only boxed kernels.
  OpRoute(const c10::OperatorHandle& op, const detail::KernelType* type);
  ~OpRoute();

  // Not safe against another set() of the same route; the registry's lock is held.
  void set(const Chain& chain);

 private:
  using Key = std::pair<std::vector<ChainMember>, std::string>;

  const detail::ChainLink& build(const Chain& chain);
  const detail::ChainLink& link(const ChainMember& member, c10::KernelFunction next);
  const detail::ChainLink& forward_to(c10::KernelFunction next);

  const c10::OperatorHandle op_;
  const detail::KernelType* const type_;
  std::map<Key, const detail::ChainLink*> heads_;
  std::vector<std::unique_ptr<const detail::ChainLink>> links_;
  std::vector<std::unique_ptr<const StableLink>> stable_links_;
  std::atomic<const detail::ChainLink*>* head_ = nullptr; // in the registered kernel
  std::optional<c10::RegistrationHandleRAII> registration_;
};

} // namespace musa_runtime
