// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Comparisons and logical operators of two operands, tensors or numbers, with BOOL results.
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/ne_meta.h>

#include "families.h"
#include "support/elementwise.h"
#include "support/numbers.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

// `of_number` is the mode for a number on the left: 2 < x is x > 2. Numbers are rounded to the dtype of the tensor
// operand, so that a FLOAT 0.1 equals the number 0.1 in whatever precision the device compares.
template <BinaryMode tensors, UnaryMode by_number, UnaryMode of_number>
void compare_in(at::ScalarType dtype, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  write_as(at::kBool, out, [&](const at::Tensor& result) {
    if (is_cpu_number(other)) {
      run_unary(by_number, result, in_dtype(self, dtype), rounded(number_in(other), dtype));
    } else if (is_cpu_number(self)) {
      run_unary(of_number, result, in_dtype(other, dtype), rounded(number_in(self), dtype));
    } else {
      run_binary(tensors, result, in_dtype(self, dtype), in_dtype(other, dtype));
    }
  });
}

template <BinaryMode tensors, UnaryMode by_number, UnaryMode of_number>
void compare(Compared common, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compare_in<tensors, by_number, of_number>(common.dtype, self, other, out);
}

template <UnaryMode mode>
void compare_with(Compared common, const at::Tensor& self, const at::Scalar& other, const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  write_as(at::kBool, out, [&](const at::Tensor& result) {
    run_unary(mode, result, in_dtype(self, dtype), rounded(other, dtype));
  });
}

bool compare_with_served(const at::Tensor& self, const at::Scalar& other) {
  return serves<all_types>(self) && !other.isComplex();
}

template <BinaryMode tensors, UnaryMode number>
struct Logical {
  static at::Tensor functional(const at::Tensor& self, const at::Tensor& other) {
    at::Tensor none;
    auto iter = at::TensorIterator::comparison_op(none, self, other);
    at::Tensor out = iter.output();
    compare_in<tensors, number, number>(iter.common_dtype(), self, other, out);
    return out;
  }
  static at::Tensor& out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
    const auto iter = at::TensorIterator::comparison_op(out, self, other);
    compare_in<tensors, number, number>(iter.common_dtype(), self, other, out);
    return out;
  }
  static at::Tensor& in_place(at::Tensor& self, const at::Tensor& other) { return out(self, other, self); }
};

bool logical_served(const at::Tensor& self, const at::Tensor& other) {
  return serves_with_numbers<all_types>(self, other);
}

bool logical_out_served(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return logical_served(self, other) && writable(out);
}

bool logical_in_place_served(at::Tensor& self, const at::Tensor& other) {
  return logical_served(self, other) && writable(self);
}

template <class Operator>
void declare_logical(OpPack& pack, Names names) {
  pack.impl(names.functional, TORCH_FN(Operator::functional), TORCH_FN(logical_served));
  pack.impl(names.out, TORCH_FN(Operator::out), TORCH_FN(logical_out_served));
  pack.impl(names.in_place, TORCH_FN(Operator::in_place), TORCH_FN(logical_in_place_served));
}

template <class Tensors, class WithNumber, BinaryMode tensors, UnaryMode by_number, UnaryMode of_number>
void declare_comparison(OpPack& pack, Names of_tensors, Names with_number) {
  structured<Tensors, compare<tensors, by_number, of_number>, takes_numbers<all_types>>(pack, of_tensors);
  structured<WithNumber, compare_with<by_number>, compare_with_served>(pack, with_number);
}

} // namespace

void declare_compare(OpPack& pack) {
// Arguments: the name, the mode, and the mode with exchanged operands.
#define COMPARISON(NAME, MODE, EXCHANGED) \
  declare_comparison< \
      at::meta::structured_##NAME##_Tensor, at::meta::structured_##NAME##_Scalar, BinaryMode::MODE, UnaryMode::MODE, \
      UnaryMode::EXCHANGED>( \
      pack, {"aten::" #NAME ".Tensor", "aten::" #NAME ".Tensor_out", "aten::" #NAME "_.Tensor"}, \
      {"aten::" #NAME ".Scalar", "aten::" #NAME ".Scalar_out", "aten::" #NAME "_.Scalar"})
  COMPARISON(eq, EQ, EQ);
  COMPARISON(ne, NE, NE);
  COMPARISON(lt, LT, GT);
  COMPARISON(le, LE, GE);
  COMPARISON(gt, GT, LT);
  COMPARISON(ge, GE, LE);
#undef COMPARISON
  declare_logical<Logical<BinaryMode::LOGICAL_AND, UnaryMode::LOGICAL_AND>>(
      pack, {"aten::logical_and", "aten::logical_and.out", "aten::logical_and_"});
  declare_logical<Logical<BinaryMode::LOGICAL_OR, UnaryMode::LOGICAL_OR>>(
      pack, {"aten::logical_or", "aten::logical_or.out", "aten::logical_or_"});
  declare_logical<Logical<BinaryMode::LOGICAL_XOR, UnaryMode::LOGICAL_XOR>>(
      pack, {"aten::logical_xor", "aten::logical_xor.out", "aten::logical_xor_"});
}

} // namespace musa_ops_mudnn
