// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// kernel<<<grid, block, shared, stream>>>(arguments)
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "simt/abi.h"

// Valid C++14, except for extensions that GCC and clang accept in system headers.
#pragma GCC system_header

namespace musa_simt {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  musaStream_t stream;

  Configuration(dim3 blocks, dim3 threads, size_t shared_bytes = 0, musaStream_t on = nullptr)
      : grid(blocks), block(threads), shared(shared_bytes), stream(on) {}
};

template <class... Values>
musaError_t launch_with(const void* symbol, const Configuration& where, const Values&... values) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(std::addressof(values)))..., nullptr};
  return musaLaunchKernel(symbol, where.grid, where.block, pointers, where.shared, where.stream);
}

template <class Function, Function kernel>
const char* signature_of() {
  return __PRETTY_FUNCTION__;
}

// musaLaunchKernel identifies a kernel by its address, if the program can take it. Otherwise the kernel is compiled
// only once, into `body`, without a function of its own.
template <class Function, Function kernel, bool by_address>
struct Kernel;

template <class... Parameters, void (*kernel)(Parameters...), bool by_address>
struct Kernel<void (*)(Parameters...), kernel, by_address> {
  // The type of the copy that the launch makes.
  template <class Parameter>
  using Stored = std::remove_cv_t<std::remove_reference_t<Parameter>>;

  static void body(void** arguments) { run(arguments, std::index_sequence_for<Parameters...>()); }

  template <size_t... i>
  static void run(void** arguments, std::index_sequence<i...>) {
    run_threads(*static_cast<const Stored<Parameters>*>(arguments[i])...);
  }

  // Arguments are passed by value, so that constants stay in registers. Large arguments are passed by reference if no
  // thread can change them (mcc turned them into references).
  template <class Parameter>
  using Passed = std::conditional_t<
      std::is_reference<Parameter>::value && (sizeof(Stored<Parameter>) > 8 * sizeof(void*)), const Stored<Parameter>&,
      Stored<Parameter>>;
  static void run_threads(Passed<Parameters>... arguments) {
#ifdef __SANITIZE_THREAD__
    kernel(arguments...);
    musa_simt_next_thread();
#else
    const unsigned count = blockDim.x;
    do {
      unsigned x = threadIdx.x;
      do {
        threadIdx.x = x;
        kernel(arguments...);
      } while (in_order && ++x < count); // no thread of the block has waited: run the next one here
    } while (musa_simt_next_thread());
#endif
  }

  static const void* symbol() {
    if constexpr (by_address) {
      return reinterpret_cast<const void*>(kernel);
    } else {
      return reinterpret_cast<const void*>(&body);
    }
  }

  // Registers the kernel for musaLaunchKernel while the library is loaded.
  struct Registration {
    Registration() {
      static constexpr size_t bytes[] = {sizeof(Stored<Parameters>)..., 0};
      static constexpr size_t alignments[] = {alignof(Stored<Parameters>)..., 1};
      const KernelInfo info{signature_of<void (*)(Parameters...), kernel>(),
                            symbol(),
                            &body,
                            bytes,
                            sizeof...(Parameters),
                            0,
                            alignments};
      musa_simt_register(&info);
    }
    ~Registration() { musa_simt_unregister(symbol()); }
  };
  static const Registration registration;

  template <class... Arguments>
  static musaError_t launch(const Configuration& where, Arguments&&... given) {
    static_assert(sizeof...(Arguments) == sizeof...(Parameters), "launch and kernel differ in number of arguments");
    static_assert(
        (std::is_trivially_destructible<Stored<Parameters>>::value && ... && true),
        "kernel arguments are copied byte by byte, but one of them has a destructor");
    (void)&registration;
    return launch_with(symbol(), where, Stored<Parameters>(static_cast<Parameters>(std::forward<Arguments>(given)))...);
  }
};

template <class... Parameters, void (*kernel)(Parameters...), bool by_address>
const typename Kernel<void (*)(Parameters...), kernel, by_address>::Registration
    Kernel<void (*)(Parameters...), kernel, by_address>::registration;

// A template or an overloaded name: a lambda that calls it resolves the overload for the arguments.
template <class Call, class... Parameters>
struct Deduced {
  static void kernel(Parameters... arguments) {
    static_assert(std::is_empty<Call>::value, "the lambda must not capture anything");
    alignas(Call) static char nothing; // before C++20, a lambda type cannot be default-constructed
    reinterpret_cast<const Call&>(nothing)(arguments...);
  }
};

template <class Call, class... Arguments>
musaError_t launch_deduced(Call, const Configuration& where, Arguments&&... given) {
  using Function = void (*)(std::decay_t<Arguments>...);
  return Kernel<Function, &Deduced<Call, std::decay_t<Arguments>...>::kernel, false>::launch(
      where, std::forward<Arguments>(given)...);
}

// A kernel that calls the kernel at an address.
template <class... Parameters>
struct Called {
  static void kernel(void (*at)(Parameters...), Parameters... arguments) {
    at(static_cast<Parameters&&>(arguments)...);
  }
};

// A launch through a pointer. The kernel's definition has registered it, unless the rewriter could not name its
// template arguments. In that case the pointer is passed to a kernel that calls it.
template <class... Parameters, class... Arguments>
musaError_t launch_pointer(const Configuration& where, void (*kernel)(Parameters...), Arguments&&... given) {
  static_assert(sizeof...(Arguments) == sizeof...(Parameters), "launch and kernel differ in number of arguments");
  if (kernel != nullptr && !musa_simt_is_registered(reinterpret_cast<const void*>(kernel))) {
    using Function = void (*)(void (*)(Parameters...), Parameters...);
    return Kernel<Function, &Called<Parameters...>::kernel, false>::launch(
        where, kernel, std::forward<Arguments>(given)...);
  }
  return launch_with(
      reinterpret_cast<const void*>(kernel), where,
      std::remove_cv_t<std::remove_reference_t<Parameters>>(
          static_cast<Parameters>(std::forward<Arguments>(given)))...);
}

// A __shared__ variable, as an instance of the local type that replaces its declaration.
template <class Variable>
Variable& shared_variable(const Site& site) {
  static char key;
  return *static_cast<Variable*>(musa_simt_shared(&site, &key, sizeof(Variable), alignof(Variable)));
}

// A __shared__ variable at namespace scope, as a member of the struct that replaces its declaration. Converts to a
// pointer to the first element for an array, otherwise to a reference.
template <class Struct, class Member, Member Struct::* member>
struct SharedOfFile {
  Site site;
  using Element = std::remove_extent_t<Member>;
  using Stands = std::conditional_t<std::is_array<Member>::value, Element*, Member&>;

  operator Stands() const { return shared_variable<Struct>(site).*member; }
  template <class Value>
  Stands operator=(const Value& value) const {
    return shared_variable<Struct>(site).*member = value;
  }
};

// extern __shared__ T name[];
template <class Element>
struct DynamicShared {
  operator Element*() const { return static_cast<Element*>(musa_simt_dynamic_shared()); }
};

} // namespace musa_simt
