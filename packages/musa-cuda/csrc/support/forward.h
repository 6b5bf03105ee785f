// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// forward<R>(function, arguments...): a call of a CUDA function with arguments of the SDK's types.
#pragma once

#include <bit>
#include <type_traits>

namespace musa_cuda {

template <class T>
concept Complete = !std::is_void_v<T> && !std::is_function_v<T> && requires { sizeof(T); };

// Handles and numbers are passed as they are, structures bit by bit. What does not fit does not compile.
template <class To, class From>
inline To as(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_pointer_v<To> && std::is_pointer_v<From>) {
    using A = std::remove_pointer_t<To>;
    using B = std::remove_pointer_t<From>;
    if constexpr (Complete<A> && Complete<B>) {
      static_assert(sizeof(A) == sizeof(B), "what the pointers point to has another size: write the function by hand");
    }
    return (To)from;
  } else if constexpr (
      (std::is_enum_v<To> || std::is_arithmetic_v<To>) && (std::is_enum_v<From> || std::is_arithmetic_v<From>)) {
    return static_cast<To>(from);
  } else {
    static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>);
    return std::bit_cast<To>(from);
  }
}

template <class Result, class R, class... Parameters, class... Arguments>
inline Result forward(R (*function)(Parameters...), Arguments... arguments) {
  static_assert(
      sizeof...(Parameters) == sizeof...(Arguments), "another number of arguments: write the function by hand");
  return as<Result>(function(as<Parameters>(arguments)...));
}

} // namespace musa_cuda
