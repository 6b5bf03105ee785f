// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include "capture/captured_call.h"
#include "in_place/host_scope.h"

#include <ATen/core/boxing/KernelFunction.h>
#include <c10/musa/MUSASyncDebugMode.h>
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/host/statistics_in_16_bits.h>
#include <musa_runtime/op_pack.h>

#include <atomic>
#include <initializer_list>

namespace musa_ops_host {

namespace detail = musa_runtime::detail;
namespace statistics_in_16_bits = musa_runtime::statistics_in_16_bits;

// Returns if a call that torch's CPU kernel refused is passed to the next candidate: there is one, and the refusal did not
// invalidate a capture. The call no longer counts as served. Otherwise throws the error, which then names missing op packs.
void pass_on(const detail::ChainLink& link, bool recorded, const c10::NotImplementedError& error);

// A generated kernel as the dispatcher calls it: while a graph is captured, the call is recorded instead of made.
//
// torch's CPU kernels select their loop by dtype before they write, and raise NotImplementedError for an unsupported dtype.
// Such a call is passed to the next candidate with its arguments unchanged. The handler costs nothing until an exception is
// thrown. tests/conformance/test_declined_calls.py checks that a refused call writes nothing.
template <typename Signature>
struct HostKernel;
template <typename Return, typename... Args>
struct HostKernel<Return(Args...)> final : c10::OperatorKernel {
  using Function = Return (*)(Args...);

  explicit HostKernel(const detail::ChainLink& link) : current(&link) {}

  static detail::ChainEntry make(const detail::ChainLink& link) {
    // Not make_unique: a unique_ptr type for each signature takes a tenth of the build time.
    auto* const functor = new HostKernel(link);
    return {
        c10::KernelFunction::makeFromUnboxedFunctor<false, HostKernel>(std::unique_ptr<c10::OperatorKernel>(functor)),
        &functor->current};
  }

  Return operator()(Args... args) {
    const detail::ChainLink& link = *current.load(std::memory_order_acquire);
    const auto kernel = reinterpret_cast<Function>(link.kernel);
    const auto served = reinterpret_cast<bool (*)(Args...)>(link.served);
    if (C10_UNLIKELY(kernel == nullptr || (served != nullptr && !served(args...)))) {
      return call(link, link.next, std::forward<Args>(args)...);
    }
    const bool recorded = musa_runtime::capturing();
    try {
      // By-value arguments are copied, because the next candidate may still need them.
      return C10_UNLIKELY(recorded) ? call(link, recording_kernel(), args...) : kernel(args...);
    } catch (const c10::NotImplementedError& error) {
      pass_on(link, recorded, error);
    }
    return call(link, link.next, args...);
  }

  // Rarely called, and long because of the boxing it may need: one copy instead of three in each kernel.
  C10_NOINLINE static Return call(const detail::ChainLink& link, const c10::KernelFunction& function, Args... args) {
    return function.call<Return, Args...>(
        link.op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), std::forward<Args>(args)...);
  }

  std::atomic<const detail::ChainLink*> current;
};

// A row of a generated table. The kernel is stored as a plain pointer with the function that has its type, so that the
// templates around it are instantiated once per signature instead of once per operator, which takes most of the build time.
struct HostOp {
  const char* name;
  const detail::KernelType* type;
  void (*kernel)();
  void (*served)(); // nullptr for kernels without a predicate
};

// Without signature and schema: the kernels are generated from the operators of the torch that they are compiled with.
template <typename Signature>
inline constexpr detail::KernelType host_type{&HostKernel<Signature>::make, nullptr, false, nullptr, nullptr, nullptr};

template <typename Signature>
HostOp host_op(const char* name, Signature* kernel) {
  return {name, &host_type<Signature>, reinterpret_cast<void (*)()>(kernel), nullptr};
}

// The predicate of a kernel that declines the calls for which `declined` returns true.
template <auto declined>
struct Unless;
template <typename... Args, bool (*declined)(Args...)>
struct Unless<declined> {
  static bool served(Args... args) { return !declined(std::forward<Args>(args)...); }
};

template <typename Signature, typename Predicate>
HostOp host_op(const char* name, Signature* kernel, Predicate* served) {
  static_assert(detail::takes_the_same_arguments<Signature, Predicate>);
  return {name, &host_type<Signature>, reinterpret_cast<void (*)()>(kernel), reinterpret_cast<void (*)()>(served)};
}

// Declares a table's kernels; calls[i] counts table[i].
void declare(musa_runtime::OpPack& pack, const HostOp* table, std::atomic<uint64_t>* calls, size_t count);

// Indexing waits for the device only if a mask must be converted to indices.
void check_sync_of_masks(const c10::List<std::optional<at::Tensor>>& indices);

// Whether the tensors are on several devices, the host included, or have several dtypes within a list. torch's composed
// kernel then runs on the tensors themselves: each one is dispatched separately, so a dtype that is refused in the middle
// leaves no list half processed.
bool is_mixed(std::initializer_list<at::TensorList> lists, std::initializer_list<at::Tensor> tensors);

} // namespace musa_ops_host
