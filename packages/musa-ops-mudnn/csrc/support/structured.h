// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/DeviceGuard.h>
#include <musa_runtime/op_pack.h>
#include <musa_runtime/structured_outputs.h>

#include "support/dense.h"
#include "support/predicates.h"

#include <array>
#include <tuple>
#include <type_traits>

// Structured operators: torch's meta function determines the outputs, one kernel of this pack fills them, and this file
// derives the three overloads of the operator: functional, in-place and out=.
//
//   void mm(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out);
//   structured<at::meta::structured_mm, mm, takes<matrix_types>>(pack, {"aten::mm", "aten::mm.out"});
//
// The kernel takes the meta function's arguments followed by the outputs. If torch derives the operator from
// TensorIterator, an elementwise kernel takes Common or Compared first (dense.h), which lets calls on dense tensors
// skip the iterator; a kernel that needs the iterator takes the iterator instead. The predicate takes the dispatcher's
// arguments.

namespace musa_ops_mudnn {

// Maps T, a parameter type of a meta function, to the type that the dispatcher passes.
template <typename T>
struct Dispatched {
  using type = T;
};
template <>
struct Dispatched<at::OptionalTensorRef> {
  using type = const std::optional<at::Tensor>&;
};

template <>
struct Dispatched<at::OptionalScalarRef> {
  using type = const std::optional<at::Scalar>&;
};

template <typename T>
decltype(auto) to_meta(typename Dispatched<T>::type value) {
  if constexpr (std::is_same_v<T, at::OptionalTensorRef>) {
    return value.has_value() && value->defined() ? at::OptionalTensorRef(*value) : at::OptionalTensorRef();
  } else if constexpr (std::is_same_v<T, at::OptionalScalarRef>) {
    return value.has_value() ? at::OptionalScalarRef(*value) : at::OptionalScalarRef();
  } else {
    return static_cast<T>(value);
  }
}

using musa_runtime::Outputs;

template <typename Method>
struct MetaMethod;
template <typename Class, typename Return, typename... Args>
struct MetaMethod<Return (Class::*)(Args...)> {
  template <auto kernel, typename First>
  static constexpr bool takes_first = std::is_invocable_v<decltype(kernel), First, Args..., const at::Tensor&>;
  template <auto kernel>
  static constexpr bool has_short_way = takes_first<kernel, Common> || takes_first<kernel, Compared>;

  template <auto kernel, typename Op, typename... Outs>
  static void run(Op& op, Args... args, const Outs&... outs) {
    if constexpr (std::is_invocable_v<decltype(kernel), at::TensorIteratorBase&, Args..., const Outs&...>) {
      kernel(op, args..., outs...);
    } else if constexpr (has_short_way<kernel>) {
      kernel({op.common_dtype()}, args..., outs...);
    } else {
      kernel(args..., outs...);
    }
  }

  // The overloads of an operator with one output. `served` is the family's predicate, over the dispatcher's arguments.
  template <typename Meta, auto kernel>
  struct One {
    using Short = std::conditional_t<takes_first<kernel, Compared>, Compared, Common>;

    static at::Tensor functional(typename Dispatched<Args>::type... args) {
      if constexpr (has_short_way<kernel>) {
        if (const at::Tensor* like = dense_operand(args...)) {
          const Short common{like->scalar_type()};
          at::Tensor out = empty_dense(*like, common.answer());
          kernel(common, to_meta<Args>(args)..., out);
          return out;
        }
      }
      Outputs<Meta, 1> op;
      op.meta(to_meta<Args>(args)...);
      run<kernel>(op, to_meta<Args>(args)..., op.maybe_get_output(0));
      return std::move(op.made[0]);
    }
    static at::Tensor& out(typename Dispatched<Args>::type... args, at::Tensor& out) {
      return write_to(out, /*in_place=*/false, args...);
    }
    template <typename Self, typename... Rest>
    struct Front {
      static at::Tensor& in_place(at::Tensor& self, Rest... rest) {
        return write_to(self, /*in_place=*/true, self, rest...);
      }
      template <auto served>
      static bool in_place_served(at::Tensor& self, Rest... rest) {
        return served(self, rest...);
      }
    };
    using InPlace = Front<typename Dispatched<Args>::type...>;

    template <auto served>
    static bool functional_served(typename Dispatched<Args>::type... args) {
      return served(args...);
    }
    template <auto served>
    static bool out_served(typename Dispatched<Args>::type... args, at::Tensor& out) {
      return served(args...) && writable(out);
    }

   private:
    static at::Tensor& write_to(at::Tensor& out, bool in_place, typename Dispatched<Args>::type... args) {
      if constexpr (has_short_way<kernel>) {
        if (const at::Tensor* like = dense_operand_for(out, args...)) {
          const Short common{like->scalar_type()};
          if (out.scalar_type() == common.answer()) {
            kernel(common, to_meta<Args>(args)..., out);
            return out;
          }
        }
      }
      Outputs<Meta, 1> op;
      op.given = {&out};
      op.in_place = in_place;
      op.meta(to_meta<Args>(args)...);
      run<kernel>(op, to_meta<Args>(args)..., op.maybe_get_output(0));
      op.finish();
      return out;
    }
  };

  // For an operator with two outputs: functional and out=.
  template <typename Meta, auto kernel>
  struct Two {
    static std::tuple<at::Tensor, at::Tensor> functional(typename Dispatched<Args>::type... args) {
      Outputs<Meta, 2> op;
      op.meta(to_meta<Args>(args)...);
      run<kernel>(op, to_meta<Args>(args)..., op.maybe_get_output(0), op.maybe_get_output(1));
      return {std::move(op.made[0]), std::move(op.made[1])};
    }
    static std::tuple<at::Tensor&, at::Tensor&> out(
        typename Dispatched<Args>::type... args, at::Tensor& out0, at::Tensor& out1) {
      Outputs<Meta, 2> op;
      op.given = {&out0, &out1};
      op.meta(to_meta<Args>(args)...);
      run<kernel>(op, to_meta<Args>(args)..., op.maybe_get_output(0), op.maybe_get_output(1));
      op.finish();
      return {out0, out1};
    }
    template <auto served>
    static bool functional_served(typename Dispatched<Args>::type... args) {
      return served(args...);
    }
    template <auto served>
    static bool out_served(typename Dispatched<Args>::type... args, at::Tensor& out0, at::Tensor& out1) {
      return served(args...) && writable(out0) && writable(out1);
    }
  };
};

// A predicate for operators that only restrict the dtypes of their tensors.
template <Dtypes types>
inline constexpr auto takes = [](const auto&... args) { return serves<types>(args...); };
// The same, but some of the tensors may be numbers.
template <Dtypes types>
inline constexpr auto takes_numbers = [](const auto&... args) { return serves_with_numbers<types>(args...); };

struct Names {
  const char* functional;
  const char* out;
  const char* in_place = nullptr; // nullptr if the operator has no such overload
};

// Declares the overloads of an operator with one output.
template <typename Meta, auto kernel, auto served>
void structured(musa_runtime::OpPack& pack, Names names) {
  using Forms = typename MetaMethod<decltype(&Meta::meta)>::template One<Meta, kernel>;
  pack.impl(names.functional, TORCH_FN(Forms::functional), TORCH_FN(Forms::template functional_served<served>));
  pack.impl(names.out, TORCH_FN(Forms::out), TORCH_FN(Forms::template out_served<served>));
  if (names.in_place != nullptr) {
    using InPlace = typename Forms::InPlace;
    pack.impl(names.in_place, TORCH_FN(InPlace::in_place), TORCH_FN(InPlace::template in_place_served<served>));
  }
}

// The same for two outputs.
template <typename Meta, auto kernel, auto served>
void structured_pair(musa_runtime::OpPack& pack, Names names) {
  using Forms = typename MetaMethod<decltype(&Meta::meta)>::template Two<Meta, kernel>;
  pack.impl(names.functional, TORCH_FN(Forms::functional), TORCH_FN(Forms::template functional_served<served>));
  pack.impl(names.out, TORCH_FN(Forms::out), TORCH_FN(Forms::template out_served<served>));
}

} // namespace musa_ops_mudnn
