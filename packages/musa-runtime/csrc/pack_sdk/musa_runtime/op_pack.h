// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/dispatch/CppSignature.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/infer_schema.h>
#include <c10/musa/MUSAMacros.h>
#include <musa_runtime/compat.h>
#include <musa_runtime/float64.h>

#include <atomic>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// A pack declares kernels for operators; the op registry selects the provider of each operator and installs it. A pack:
//
//   MUSA_OP_PACK(demo, pack) {
//     pack.impl("aten::relu", TORCH_FN(relu_kernel), TORCH_FN(relu_served));
//   }
//
// relu_served has relu's parameters and returns whether this pack can serve the arguments; if it declines, the next
// candidate in rank is called. Kernels are called with the current device set by the caller's tensors.
//
// The declaration runs when the library is loaded, unless the library was built for another ABI of the runtime or another
// minor of torch. Each kernel is checked against the operator's schema. A pack is accepted as a whole or not at all, and
// its failure is recorded instead of thrown (take_pack_failures()). A kernel for an operator that this torch does not have,
// for example one of a library that is not loaded, is kept but not installed.

namespace musa_runtime {

namespace detail {

// One candidate in an operator's chain. Immutable once the dispatcher can reach it. Code that is inlined into packs reads
// these fields: a change of this struct needs another MUSA_RUNTIME_ABI.
struct ChainLink {
  void (*kernel)(); // nullptr: every call is passed to `next`
  void (*served)(); // the predicate; nullptr for kernels without one
  std::atomic<uint64_t>* calls;
  const char* provider;
  c10::KernelFunction next; // invalid if a call ends with this kernel
  c10::OperatorHandle op;
  bool without_float64; // calls that need float64 are passed to `next`
};

// Adds the operator and its provider to an error that leaves a kernel.
C10_MUSA_API void add_context(c10::Error& error, const ChainLink& link);

// A kernel for the dispatcher, and the pointer through which it reads its link.
struct ChainEntry {
  c10::KernelFunction kernel;
  std::atomic<const ChainLink*>* link;
};

// The registry's view of a kernel's C++ type. Part of the ABI like ChainLink.
struct KernelType {
  ChainEntry (*make)(const ChainLink& link);
  void (*declines)(); // a predicate that declines every call; nullptr for kernels without a predicate
  bool symbolic; // a parameter is a SymInt
  c10::impl::CppSignature (*signature)();
  c10::FunctionSchema (*schema)();
  void (*check_signature)(const c10::OperatorHandle& op); // throws c10::Error
};

// The functor of an installed kernel. The link is read once per call, so that a call follows one chain to its end while
// another thread changes the order of providers.
template <typename Signature, bool conditional>
class ChainKernel;
template <typename Return, typename... Args, bool conditional>
class ChainKernel<Return(Args...), conditional> final : public c10::OperatorKernel {
 public:
  explicit ChainKernel(const ChainLink& link) : link_(&link) {}

  static ChainEntry make(const ChainLink& link) {
    // Not make_unique: a unique_ptr type for each signature would take a tenth of the compile time of packs.
    auto* const functor = new ChainKernel(link);
    return {
        c10::KernelFunction::makeFromUnboxedFunctor<false, ChainKernel>(std::unique_ptr<c10::OperatorKernel>(functor)),
        &functor->link_};
  }

  static bool declines(Args... /*args*/) { return false; }

  Return operator()(Args... args) {
    const ChainLink& link = *link_.load(std::memory_order_acquire);
    if (C10_UNLIKELY(link.without_float64) &&
        need_float64((0U | ... | numbers_of_argument<std::decay_t<Args>>(args)))) {
      return call_next(link, std::forward<Args>(args)...);
    }
    if constexpr (conditional) {
      if (!reinterpret_cast<bool (*)(Args...)>(link.served)(args...)) {
        return call_next(link, std::forward<Args>(args)...);
      }
    } else if (C10_UNLIKELY(link.kernel == nullptr)) {
      return call_next(link, std::forward<Args>(args)...);
    }
    link.calls->fetch_add(1, std::memory_order_relaxed);
    try {
      return reinterpret_cast<Return (*)(Args...)>(link.kernel)(std::forward<Args>(args)...);
    } catch (c10::Error& error) {
      add_context(error, link);
      throw;
    }
  }

 private:
  C10_ALWAYS_INLINE static Return call_next(const ChainLink& link, Args... args) {
    return link.next.template call<Return, Args...>(
        link.op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), std::forward<Args>(args)...);
  }

  std::atomic<const ChainLink*> link_;
};

template <typename Signature>
void check_signature(const c10::OperatorHandle& op) {
  static_cast<void>(op.typed<Signature>());
}

template <typename Signature, bool conditional>
const KernelType& kernel_type() {
  using Kernel = ChainKernel<Signature, conditional>;
  static const KernelType type{
      &Kernel::make,
      conditional ? reinterpret_cast<void (*)()>(&Kernel::declines) : nullptr,
      c10::fn_has_symint<Signature>::value,
      &c10::impl::CppSignature::make<Signature>,
      &c10::inferFunctionSchemaFlattenedReturns<Signature>,
      &check_signature<Signature>};
  return type;
}

struct GeneratedKernel {
  const char* op;
  const KernelType* type;
  void (*kernel)();
  void (*served)(); // nullptr for kernels without a predicate
  std::atomic<uint64_t>* calls;
  bool conditional; // it may decline a call, by its predicate or by raising NotImplementedError
};

template <typename Kernel, typename Predicate>
inline constexpr bool takes_the_same_arguments = false;
template <typename Return, typename... Args>
inline constexpr bool takes_the_same_arguments<Return(Args...), bool(Args...)> = true;

} // namespace detail

// The kernels that one library declares, for one provider.
class C10_MUSA_API OpPack {
 public:
  // kernel: TORCH_FN(function) with the operator's C++ signature.
  template <typename Signature, Signature* kernel>
  OpPack& impl(const char* op, c10::CompileTimeFunctionPointer<Signature, kernel> /*fn*/) {
    return add(op, detail::kernel_type<Signature, false>(), reinterpret_cast<void (*)()>(kernel), nullptr);
  }

  // served: TORCH_FN(function) with the same parameters, returning bool. It may read metadata only.
  template <typename Signature, Signature* kernel, typename Predicate, Predicate* served>
  OpPack& impl(
      const char* op, c10::CompileTimeFunctionPointer<Signature, kernel> /*fn*/,
      c10::CompileTimeFunctionPointer<Predicate, served> /*predicate*/) {
    static_assert(
        detail::takes_the_same_arguments<Signature, Predicate>,
        "The predicate of a kernel must return bool and have the kernel's parameters, by the same types.");
    return add(
        op, detail::kernel_type<Signature, true>(), reinterpret_cast<void (*)()>(kernel),
        reinterpret_cast<void (*)()>(served));
  }

  // A kernel of a generated table, which is checked against no schema and counted by the table.
  OpPack& generated(const detail::GeneratedKernel& kernel);

  // Returns the same library's kernels for another provider. "runtime" is the provider of compositions of torch's
  // operators, which rank behind the kernels of packs. They are accepted or refused together with this pack's.
  OpPack& of_provider(const char* provider);

  // Declares that the kernels of this provider dereference device memory on the host; they are candidates only if the host
  // can address it.
  OpPack& needs_host_addressable();

  // The operators declared so far, in order.
  const std::vector<std::string>& declared() const;

  struct State;
  explicit OpPack(State& state) : state_(state) {}

 private:
  OpPack& add(const char* op, const detail::KernelType& type, void (*kernel)(), void (*served)());

  State& state_;
};

// The argument of declare_pack(). Its layout must not change: it is read before the ABI numbers are compared.
struct PackDeclaration {
  const char* provider;
  int abi;
  int torch_major;
  int torch_minor;
  void (*declare)(OpPack&);
};

// Adds all kernels of a pack to the op registry, or adds none and records the reason. Returns whether they were added.
// Called while a library is loaded, where an exception would end the process or the import.
C10_MUSA_API bool declare_pack(const PackDeclaration& declaration) noexcept;

struct PackFailure {
  std::string provider;
  std::string op; // empty if the failure is not about one operator
  std::string message; // what happened, have and need, and the command that fixes it
};

// Returns the failures that were recorded since the last call, and removes them from the record.
C10_MUSA_API std::vector<PackFailure> take_pack_failures();

} // namespace musa_runtime

// Runs when the pack's library is loaded. PROVIDER is the pack's short name, as used in TORCH_MUSA_OPS.
#define MUSA_OP_PACK(PROVIDER, PACK) MUSA_OP_PACK_IN(#PROVIDER, PACK, C10_CONCATENATE(musa_op_pack_##PROVIDER, C10_UID))
// A provider's packs may be in several files that are compiled as one, so their functions are numbered.
#define MUSA_OP_PACK_IN(PROVIDER, PACK, FUNCTION) \
  static void FUNCTION(::musa_runtime::OpPack& PACK); \
  [[maybe_unused]] static const bool C10_CONCATENATE(FUNCTION, _declared) = \
      ::musa_runtime::declare_pack({PROVIDER, MUSA_RUNTIME_ABI, TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, &FUNCTION}); \
  static void FUNCTION(::musa_runtime::OpPack& PACK)
