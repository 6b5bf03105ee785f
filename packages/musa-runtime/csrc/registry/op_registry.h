// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <musa_runtime/op_pack.h>
#include <registry/op_policy.h>
#include <registry/stable_kernel.h>

#include <c10/util/FunctionRef.h>

#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

// The candidates of every operator, and the selection of its provider. Packs include only op_pack.h.

namespace musa_runtime {

// One provider's kernel for one operator. Address-stable: chains point to its counter and its name.
struct Candidate {
  Candidate(
      std::string op_, std::string provider_, const detail::KernelType* type_, void (*kernel_)(), void (*served_)(),
      bool conditional_, bool needs_host_addressable_)
      : op(std::move(op_)),
        provider(std::move(provider_)),
        type(type_),
        kernel(kernel_),
        served(served_),
        conditional(conditional_),
        needs_host_addressable(needs_host_addressable_) {}

  Candidate(std::string op_, std::string provider_, const MusaStableKernel& declared, uint64_t torch_built)
      : Candidate(
            std::move(op_), std::move(provider_), &StableKernel::type(), reinterpret_cast<void (*)()>(declared.kernel),
            reinterpret_cast<void (*)()>(declared.served), /*conditional=*/declared.served != nullptr,
            /*needs_host_addressable=*/false) {
    stable = std::make_unique<StableKernel>(declared, torch_built);
  }

  std::string op; // "aten::add.Tensor"
  std::string provider;
  const detail::KernelType* type;
  void (*kernel)();
  void (*served)(); // nullptr for kernels without a predicate
  // May decline a call: by its predicate, or by raising NotImplementedError (host kernels).
  bool conditional;
  // Dereferences device memory on the host, so it serves only memory that the host can address.
  bool needs_host_addressable;
  // Counted by the installed kernel: this candidate's own counter, or one in the static table of generated kernels.
  std::atomic<uint64_t> own_calls{0};
  std::atomic<uint64_t>* calls = &own_calls;
  std::unique_ptr<StableKernel> stable; // of kernels over torch's stable ABI
  // Whether it fits the operator's schema: unknown until the operator is defined.
  enum class Fit { Unknown, Yes, No } fit = Fit::Unknown;
};

// The data that explain() and the command line print.
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
  // Where the order comes from: "default", "file", "TORCH_MUSA_OPS", "prefer" or "set_policy". Empty if there is none.
  std::string origin;
  std::vector<CandidateInfo> candidates;
  uint64_t calls;
};

class C10_MUSA_API OpRegistry {
 public:
  static OpRegistry& get();

  // Adds all candidates, or throws PackError and adds none. `provider` is registered even without an operator, so that a
  // policy may name it.
  void add(const std::string& provider, std::vector<std::unique_ptr<Candidate>> candidates);
  // Checks candidates whose operator was not defined yet when they were added, and returns those that do not fit: they
  // are never installed.
  std::vector<PackFailure> check_late_operators();

  // Reads TORCH_MUSA_OPS and TORCH_MUSA_FALLBACK and installs everything declared so far; later additions are installed
  // immediately. Called when the device is first used.
  void install();
  // Ends that until the next install(), for the time in which packs are loaded. Installed kernels remain. Returns false, and
  // does nothing, before the first install().
  bool pause();
  // Between these calls, Python has not loaded its packs: install() does not read TORCH_MUSA_OPS, which may name them, and
  // packs_are_loaded() lets the next install() install everything again. Pinned memory, a generator or a C++ library may use
  // the device before, and no operator's provider may depend on that.
  void await_packs();
  void packs_are_loaded();

  // The policy may change while other threads call operators: each call follows the old order or the new one to its end.
  // Only the first pin of an operator that has no candidate changes the dispatcher's own table, which torch does not guard.

  // "mudnn,host" orders all ops; "aten::mm=host;aten::relu=host-copy" pins some. Raises ValueError for an unknown
  // provider or op, and leaves the policy as it was.
  void set_policy(const std::string& spec);
  // Restores TORCH_MUSA_OPS as it was at the first use of the device.
  void reset_policy();
  // Sets the orders that hold where the policy has no rule.
  void set_measured(MeasuredOrders measured);
  // pattern: an operator's name, in which '*' matches any text.
  void prefer(const std::string& pattern, const std::vector<std::string>& providers);

  std::vector<std::string> providers() const;
  // The number of operators of this torch for which each provider has declared a kernel.
  std::map<std::string, size_t> declared() const;
  bool has(const std::string& op) const;
  OpInfo explain(const std::string& op) const;
  std::vector<OpInfo> table() const;
  // The operator of each candidate's call counter, for the profiler.
  std::unordered_map<const std::atomic<uint64_t>*, std::string> names_by_counter() const;

 private:
  OpRegistry();
  ~OpRegistry() = delete; // lives until the process ends: installed kernels point into it
  struct State;
  State& state_;
};

// A pack's error, with the operator that it concerns.
struct PackError : std::runtime_error {
  PackError(std::string op_, const std::string& message) : std::runtime_error(message), op(std::move(op_)) {}
  std::string op;
};

inline constexpr char kRebuildPack[] =
    "Fix: build the pack again with the installed torch and musa-runtime: pip install --no-build-isolation --no-deps "
    "--force-reinstall <the pack's sources>";

// Runs the declaration of a pack; an exception that leaves it is recorded as the pack's failure (take_pack_failures()).
// Returns whether there was none.
bool record_failure(const char* provider, c10::function_ref<void()> declare) noexcept;

// The kernels that the current declaration has added so far for one provider.
struct OpPack::State {
  std::string provider;
  std::vector<std::unique_ptr<Candidate>>* candidates; // of the whole library
  std::vector<std::unique_ptr<OpPack::State>>* providers; // the other providers of the library
  bool needs_host_addressable = false;
  std::vector<std::string> declared;
  OpPack pack{*this};
};

} // namespace musa_runtime
