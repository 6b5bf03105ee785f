// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/elementwise.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "support/call.h"

namespace musa_ops_mudnn {
namespace {

// Passes the value as the setter's type: an integer for integer tensors, so that it stays exact.
template <class Set>
void set_number(const at::Scalar& value, const at::Tensor& in, const char* call, Set&& set) {
  if (value.isFloatingPoint() || at::isFloatingType(in.scalar_type())) {
    check(set(value.toDouble()), call, {&in});
  } else {
    check(set(value.toLong()), call, {&in});
  }
}

template <class Operation>
void set_alpha(Operation& op, const at::Scalar& alpha, const at::Tensor& in) {
  set_number(alpha, in, "SetAlpha", [&op](auto value) { return op.SetAlpha(value); });
}

void run(const dnn::Unary& op, const at::Tensor& out, const at::Tensor& in) {
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result, operand(in)), "Unary::Run", {&out, &in});
}

void run(const dnn::Binary& op, const at::Tensor& out, const at::Tensor& left, const at::Tensor& right) {
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result, operand(left), operand(right)), "Binary::Run", {&out, &left, &right});
}

void run(const dnn::Ternary& op, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result, operand(a), operand(b), operand(c)), "Ternary::Run", {&out, &a, &b, &c});
}

dnn::Fill fill_with(const at::Scalar& value, const at::Tensor& out) {
  dnn::Fill op;
  set_number(value, out, "Fill::SetValue", [&op](auto number) { return op.SetValue(number); });
  return op;
}

template <class Operation, class Mode>
Operation of_mode(Mode mode) {
  Operation op;
  check(op.SetMode(mode), "SetMode");
  return op;
}

} // namespace

at::Scalar number_in(const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(tensor.is_cpu() && tensor.dim() == 0);
  return AT_DISPATCH_V2(
      tensor.scalar_type(), "number_in", AT_WRAP([&] { return at::Scalar(*tensor.const_data_ptr<scalar_t>()); }),
      AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16, at::kBool);
}

void run_unary(UnaryMode mode, const at::Tensor& out, const at::Tensor& in) { run(of_mode<dnn::Unary>(mode), out, in); }

void run_unary(UnaryMode mode, const at::Tensor& out, const at::Tensor& in, const at::Scalar& alpha) {
  auto op = of_mode<dnn::Unary>(mode);
  set_alpha(op, alpha, in);
  run(op, out, in);
}

void run_unary(
    UnaryMode mode, const at::Tensor& out, const at::Tensor& in, const at::Scalar& alpha, const at::Scalar& beta) {
  auto op = of_mode<dnn::Unary>(mode);
  set_alpha(op, alpha, in);
  set_number(beta, in, "SetBeta", [&op](auto value) { return op.SetBeta(value); });
  run(op, out, in);
}

void run_binary(BinaryMode mode, const at::Tensor& out, const at::Tensor& left, const at::Tensor& right) {
  run(of_mode<dnn::Binary>(mode), out, left, right);
}

void run_binary(
    BinaryMode mode, const at::Tensor& out, const at::Tensor& left, const at::Tensor& right, const at::Scalar& alpha) {
  auto op = of_mode<dnn::Binary>(mode);
  set_alpha(op, alpha, left);
  run(op, out, left, right);
}

void run_ternary(
    TernaryMode mode, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  run(of_mode<dnn::Ternary>(mode), out, a, b, c);
}

void run_ternary(
    TernaryMode mode, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
    const at::Scalar& alpha) {
  auto op = of_mode<dnn::Ternary>(mode);
  set_alpha(op, alpha, a);
  run(op, out, a, b, c);
}

void run_fill(const at::Tensor& out, const at::Scalar& value) {
  const dnn::Fill op = fill_with(value, out);
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result), "Fill::Run", {&out});
}

void run_masked_fill(const at::Tensor& out, const at::Tensor& mask, const at::Scalar& value) {
  const dnn::Fill op = fill_with(value, out);
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result, operand(mask)), "Fill::Run", {&out, &mask});
}

void convert(const at::Tensor& out, const at::Tensor& in) {
  run_unary(out.scalar_type() == in.scalar_type() ? UnaryMode::IDENTITY : UnaryMode::CAST, out, in);
}

at::Tensor empty_as(const at::Tensor& like, at::ScalarType dtype) {
  if (like.is_privateuseone() && like.layout() == at::kStrided) [[likely]] {
    const c10::DeviceIndex device = like.device().index();
    return like.is_non_overlapping_and_dense()
        ? at::detail::empty_strided_musa(like.sizes(), like.strides(), dtype, device)
        : at::detail::empty_strided_musa(
              like.sizes(), at::infer_dense_strides(like.sizes(), like.strides()), dtype, device);
  }
  return at::empty_like(like, like.options().dtype(dtype));
}

namespace {

at::Tensor converted(const at::Tensor& tensor, at::ScalarType dtype) {
  at::Tensor result = empty_as(tensor, dtype);
  convert(result, tensor);
  return result;
}

} // namespace

Operand in_dtype(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.scalar_type() == dtype ? Operand::borrowed(tensor) : Operand(converted(tensor, dtype));
}

Operand in_dtype(at::Tensor&& tensor, at::ScalarType dtype) {
  return tensor.scalar_type() == dtype ? Operand(std::move(tensor)) : Operand(converted(tensor, dtype));
}

at::Tensor number_on_device(const at::Scalar& value, const at::Tensor& like, at::ScalarType dtype) {
  at::Tensor result = new_empty(like, {}, dtype);
  run_fill(result, value);
  return result;
}

} // namespace musa_ops_mudnn
