// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <registry/op_route.h>

#include <registry/stable_kernel.h>

#include <algorithm>

namespace musa_runtime {
namespace {

using detail::ChainEntry;
using detail::ChainLink;
using detail::KernelType;

// The registered kernel of operators without unboxed kernels.
class BoxedKernel final : public c10::OperatorKernel {
 public:
  explicit BoxedKernel(const ChainLink& link) : link_(&link) {}

  static ChainEntry make(const ChainLink& link) {
    auto functor = std::make_unique<BoxedKernel>(link);
    std::atomic<const ChainLink*>* const at = &functor->link_;
    return {c10::KernelFunction::makeFromBoxedFunctor(std::move(functor)), at};
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    link_.load(std::memory_order_acquire)->next.callBoxed(op, keys, stack);
  }

 private:
  std::atomic<const ChainLink*> link_;
};

// Whether a registered kernel of one type can call a link of the other. Two libraries have two objects for one C++ type.
bool is_same(const KernelType& a, const KernelType& b) {
  return &a == &b ||
      (a.signature != nullptr && b.signature != nullptr && (a.declines == nullptr) == (b.declines == nullptr) &&
       a.signature() == b.signature());
}

} // namespace

namespace detail {

void add_context(c10::Error& error, const ChainLink& link) {
  error.add_context("in " + c10::toString(link.op.operator_name()) + ", served by " + link.provider);
}

} // namespace detail

// Defined here because StableLink is complete here.
OpRoute::OpRoute(const c10::OperatorHandle& op, const KernelType* type) : op_(op), type_(type) {}
OpRoute::~OpRoute() = default;

const ChainLink& OpRoute::link(const ChainMember& member, c10::KernelFunction next) {
  ChainLink made{member.kernel,   member.served, member.calls,          member.provider,
                 std::move(next), op_,           member.without_float64};
  if (member.type == &StableKernel::type()) {
    stable_links_.push_back(std::make_unique<const StableLink>(StableLink{std::move(made), member.stable}));
    return *stable_links_.back();
  }
  links_.push_back(std::make_unique<const ChainLink>(std::move(made)));
  return *links_.back();
}

const ChainLink& OpRoute::forward_to(c10::KernelFunction next) {
  const ChainMember nothing{type_, nullptr, type_ == nullptr ? nullptr : type_->declines, nullptr, ""};
  return link(nothing, std::move(next));
}

const ChainLink& OpRoute::build(const Chain& chain) {
  c10::KernelFunction next = chain.last;
  for (size_t i = chain.members.size(); i > 1; --i) {
    const ChainMember& member = chain.members[i - 1];
    next = member.type->make(link(member, std::move(next))).kernel;
  }
  if (chain.members.empty()) {
    return forward_to(std::move(next));
  }
  const ChainMember& head = chain.members.front();
  if (type_ != nullptr && is_same(*type_, *head.type)) {
    return link(head, std::move(next));
  }
  return forward_to(head.type->make(link(head, std::move(next))).kernel);
}

void OpRoute::set(const Chain& chain) {
  const ChainLink*& head = heads_[Key(chain.members, chain.last_name)];
  if (head == nullptr) {
    head = &build(chain);
  }
  if (head_ != nullptr) {
    head_->store(head, std::memory_order_release);
    return;
  }
  ChainEntry entry = type_ == nullptr ? BoxedKernel::make(*head) : type_->make(*head);
  registration_.emplace(
      c10::Dispatcher::singleton().registerImpl(
          op_.operator_name(), c10::DispatchKey::PrivateUse1, std::move(entry.kernel), std::nullopt, nullptr,
          "torch_musa op registry"));
  head_ = entry.link;
}

} // namespace musa_runtime
