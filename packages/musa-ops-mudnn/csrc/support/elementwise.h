// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Unary, Binary, Ternary and Fill on torch's tensors, and what torch's type promotion asks around them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/musa/EmptyTensor.h>
#include <c10/core/Scalar.h>
#include <musa_runtime/mudnn.h>

#include <utility>

#include "support/call.h"

namespace musa_ops_mudnn {

using UnaryMode = dnn::Unary::Mode;
using BinaryMode = dnn::Binary::Mode;
using TernaryMode = dnn::Ternary::Mode;

// The value of a CPU tensor without dimensions.
at::Scalar number_in(const at::Tensor& tensor);

// out = mode(in), of one shape. Alpha and beta are given as integers to integer tensors.
void run_unary(UnaryMode mode, const at::Tensor& out, const at::Tensor& in);
void run_unary(UnaryMode mode, const at::Tensor& out, const at::Tensor& in, const at::Scalar& alpha);
void run_unary(
    UnaryMode mode, const at::Tensor& out, const at::Tensor& in, const at::Scalar& alpha, const at::Scalar& beta);
// The inputs broadcast.
void run_binary(BinaryMode mode, const at::Tensor& out, const at::Tensor& left, const at::Tensor& right);
void run_binary(
    BinaryMode mode, const at::Tensor& out, const at::Tensor& left, const at::Tensor& right, const at::Scalar& alpha);
void run_ternary(
    TernaryMode mode, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c);
void run_ternary(
    TernaryMode mode, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
    const at::Scalar& alpha);
void run_fill(const at::Tensor& out, const at::Scalar& value);
// Where the mask, a BOOL tensor of out's shape, is true.
void run_masked_fill(const at::Tensor& out, const at::Tensor& mask, const at::Scalar& value);

// Converts through CAST. For tensors that predicates took.
void convert(const at::Tensor& out, const at::Tensor& in);
// The tensor itself where it is of that dtype.
Operand in_dtype(const at::Tensor& tensor, at::ScalarType dtype);
Operand in_dtype(at::Tensor&& tensor, at::ScalarType dtype);
// The number in a tensor on the device, so that it can stand beside tensors.
at::Tensor number_on_device(const at::Scalar& value, const at::Tensor& like, at::ScalarType dtype);

// A tensor shaped as `like`, with its strides where it is dense.
at::Tensor empty_as(const at::Tensor& like, at::ScalarType dtype);
// A contiguous tensor on like's device. at::empty would be dispatched, which costs as much as a small operator.
inline at::Tensor new_empty(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::detail::empty_musa(sizes, dtype, like.device().index());
}
inline at::Tensor new_empty(const at::Tensor& like, at::IntArrayRef sizes) {
  return new_empty(like, sizes, like.scalar_type());
}

// Calls write(result) with a tensor of `dtype` that ends in out: out itself, or one that is converted afterwards.
template <class Write>
void write_as(at::ScalarType dtype, const at::Tensor& out, Write&& write) {
  if (out.scalar_type() == dtype) {
    write(out);
  } else {
    const at::Tensor result = empty_as(out, dtype);
    write(result);
    convert(out, result);
  }
}

// The same with a contiguous result, for operations of muDNN that reject all other layouts.
template <class Write>
void write_contiguous(at::ScalarType dtype, const at::Tensor& out, Write&& write) {
  if (out.scalar_type() == dtype && out.is_contiguous()) {
    write(out);
  } else {
    const at::Tensor result = new_empty(out, out.sizes(), dtype);
    write(result);
    convert(out, result);
  }
}
template <class Write>
void write_contiguous(const at::Tensor& out, Write&& write) {
  write_contiguous(out.scalar_type(), out, std::forward<Write>(write));
}

} // namespace musa_ops_mudnn
