// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <musa_runtime/op_pack.h>
#include <musa_runtime/stable_abi.h>

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/function_schema.h>

#include <exception>
#include <optional>
#include <string>

namespace musa_runtime {

// A kernel over torch's stable ABI. Only the functor that torch_library_impl registers converts between IValues and
// StableIValues. So the kernel is registered with an operator of its own in the namespace "musa_stable", and called through
// the kernel function of that operator.
class StableKernel {
 public:
  // torch_built: TORCH_ABI_VERSION of the pack's headers, from which torch derives the form of the values.
  StableKernel(const MusaStableKernel& declared, uint64_t torch_built);

  // The reason why the kernel cannot serve an operator; empty if it can. `op` is the operator's name, for the errors.
  std::string misfit(const std::string& provider, const std::string& op, const c10::FunctionSchema& schema) const;

  // Registers kernel and predicate for the operator at the first call. Called under the registry's lock.
  void bind(const std::string& provider, const c10::OperatorHandle& op);

  // Whether the predicate accepts the arguments at the end of the stack, which it leaves there.
  bool serves(c10::DispatchKeySet keys, const torch::jit::Stack& stack) const;
  void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const;

  // The type of all stable kernels: a registered kernel of this type calls links whose member has a StableKernel.
  static const detail::KernelType& type();

 private:
  // A boxed function, registered as torch's kernel of its own operator.
  struct Bound {
    c10::RegistrationHandleRAII definition;
    c10::SafeKernelFunction kernel;
  };
  Bound register_function(const c10::FunctionSchema& schema, MusaStableFunction function) const;

  std::string signature_;
  MusaStableFunction function_;
  MusaStableFunction served_; // nullptr for kernels without a predicate
  uint64_t torch_built_;
  size_t arguments_ = 0;
  std::optional<Bound> kernel_;
  std::optional<Bound> predicate_;
};

// The error behind a message that a function of stable_abi.h returned on this thread; nullptr if the message is not one of
// these.
std::exception_ptr take_original_error(const std::string& message);

// Whether an operator was registered by a StableKernel; lists of operators leave it out.
bool is_stable_kernel(const c10::OperatorName& name);

// The link of a StableKernel in a chain; kernel is nullptr if every call is passed to the next link.
struct StableLink : detail::ChainLink {
  const StableKernel* stable;
};

} // namespace musa_runtime
