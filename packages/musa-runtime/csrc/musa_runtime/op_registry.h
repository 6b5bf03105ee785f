// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/musa/MUSAMacros.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

// Packs declare candidates for operators; the registry decides which one serves each operator and installs it. A pack:
//
//   MUSA_OP_PACK(demo, pack) {
//     pack.impl("aten::relu", TORCH_FN(relu_kernel), TORCH_FN(relu_served));
//   }
//
// relu_served takes relu's arguments and returns whether this pack can serve them; when it declines, the call goes on to
// the next candidate in rank. Kernels are called with the current device set by the caller's tensors.

namespace musa_runtime {

class OpRegistry;

// One provider's offer for one operator. Address-stable: installed kernels keep a pointer to it.
struct C10_MUSA_API Candidate {
  std::string op; // "aten::add.Tensor"
  std::string provider;
  bool conditional = false;
  // Serves device memory that the host cannot address (false for kernels that dereference it on the host).
  bool needs_host_addressable = false;
  std::function<c10::KernelFunction(Candidate&)> make;

  // Counted by the installed kernel. Points into the candidate, or into the static table of generated kernels.
  std::atomic<uint64_t> own_calls{0};
  std::atomic<uint64_t>* calls = &own_calls;

  // Set when the registry installs this candidate: where a declined call goes. Read without a lock by kernels; changed
  // only while the op is being re-installed, under the registry's lock.
  c10::KernelFunction next;
  std::unique_ptr<c10::OperatorHandle> handle;

  void count() {
    calls->fetch_add(1, std::memory_order_relaxed);
  }
};

// What explain() and the command line print.
struct CandidateInfo {
  std::string provider;
  bool conditional;
  uint64_t calls;
  int rank; // -1: excluded by the policy
};
struct OpInfo {
  std::string op;
  std::string provider;
  std::string reason;
  std::vector<CandidateInfo> candidates;
  uint64_t calls;
};

class C10_MUSA_API OpRegistry {
 public:
  static OpRegistry& get();

  void add(std::unique_ptr<Candidate> candidate);
  // Registers a pack's name even before it declares an op, so that a policy may name it.
  void add_provider(const std::string& provider);

  // Reads TORCH_MUSA_OPS and TORCH_MUSA_FALLBACK and installs everything declared so far; later additions install
  // themselves. Called once, when the device is first used.
  void install();

  // "mudnn,native" orders all ops; "aten::mm=native;aten::relu=cpu" pins some. Raises ValueError for an unknown
  // provider or op, and leaves the policy as it was.
  void set_policy(const std::string& spec);
  void reset_policy();
  // Pattern: an op name, with '*' standing for anything.
  void prefer(const std::string& pattern, const std::vector<std::string>& providers);

  std::vector<std::string> providers() const;
  bool has(const std::string& op) const;
  OpInfo explain(const std::string& op) const;
  std::vector<OpInfo> table() const;
  // Which operator each candidate's call counter belongs to, for the profiler.
  std::unordered_map<const std::atomic<uint64_t>*, std::string> names_by_counter() const;

 private:
  OpRegistry();
  ~OpRegistry() = delete; // lives as long as the process: installed kernels point into it
  struct State;
  State& state_;
};

// The declaration side, used through MUSA_OP_PACK.
class C10_MUSA_API OpPack {
 public:
  explicit OpPack(std::string provider, bool needs_host_addressable = false);

  // kernel: TORCH_FN(function) with the operator's C++ signature.
  template <typename Signature, Signature* kernel>
  OpPack& impl(const char* op, c10::CompileTimeFunctionPointer<Signature, kernel> /*fn*/) {
    return add(op, false, [](Candidate& candidate) {
      return Unconditional<Signature>::make(candidate, kernel);
    });
  }

  // served: TORCH_FN(function) with the same parameters, returning bool. Must look at metadata only.
  template <typename Signature, Signature* kernel, typename Predicate, Predicate* served>
  OpPack& impl(
      const char* op,
      c10::CompileTimeFunctionPointer<Signature, kernel> /*fn*/,
      c10::CompileTimeFunctionPointer<Predicate, served> /*predicate*/) {
    return add(op, true, [](Candidate& candidate) {
      return Conditional<Signature, Predicate>::make(candidate, kernel, served);
    });
  }

  OpPack& impl_boxed(const char* op, c10::KernelFunction (*make)(Candidate&)) {
    return add(op, false, make);
  }

  OpPack& add(const char* op, bool conditional, std::function<c10::KernelFunction(Candidate&)> make);

  // The operators declared so far, in order.
  const std::vector<std::string>& declared() const {
    return declared_;
  }

 private:
  // An error that leaves a kernel says whose it was.
  template <typename Return, typename... Args>
  static Return run(Candidate& candidate, Return (*kernel)(Args...), std::type_identity_t<Args>... args) {
    try {
      return kernel(std::forward<Args>(args)...);
    } catch (c10::Error& error) {
      error.add_context("in " + candidate.op + ", served by " + candidate.provider);
      throw;
    }
  }

  template <typename Signature>
  struct Unconditional;
  template <typename Return, typename... Args>
  struct Unconditional<Return(Args...)> {
    static c10::KernelFunction make(Candidate& candidate, Return (*kernel)(Args...)) {
      return c10::KernelFunction::makeFromUnboxedLambda([&candidate, kernel](Args... args) -> Return {
        candidate.count();
        return run(candidate, kernel, std::forward<Args>(args)...);
      });
    }
  };

  template <typename Signature, typename Predicate>
  struct Conditional;
  template <typename Return, typename... Args, typename Predicate>
  struct Conditional<Return(Args...), Predicate> {
    static c10::KernelFunction make(Candidate& candidate, Return (*kernel)(Args...), Predicate* served) {
      return c10::KernelFunction::makeFromUnboxedLambda([&candidate, kernel, served](Args... args) -> Return {
        if (!served(args...)) {
          return candidate.next.call<Return, Args...>(
              *candidate.handle,
              c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
              std::forward<Args>(args)...);
        }
        candidate.count();
        return run(candidate, kernel, std::forward<Args>(args)...);
      });
    }
  };

  std::string provider_;
  bool needs_host_addressable_;
  std::vector<std::string> declared_;
};

} // namespace musa_runtime

// Runs when the pack's library is loaded. PROVIDER is the pack's short name, as users write it in TORCH_MUSA_OPS.
#define MUSA_OP_PACK(PROVIDER, PACK)                                      \
  static void musa_op_pack_##PROVIDER(::musa_runtime::OpPack& PACK);      \
  static const bool musa_op_pack_registered_##PROVIDER = [] {             \
    ::musa_runtime::OpPack pack(#PROVIDER);                               \
    musa_op_pack_##PROVIDER(pack);                                        \
    return true;                                                          \
  }();                                                                    \
  static void musa_op_pack_##PROVIDER(::musa_runtime::OpPack& PACK)
