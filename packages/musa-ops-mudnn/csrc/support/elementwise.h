// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Unary, Binary, Ternary and Fill for torch tensors, with torch's type promotion.
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

// Returns the value of a 0-dim CPU tensor.
at::Scalar number_in(const at::Tensor& tensor);

// Computes out = mode(in); both have the same shape. Alpha and beta are passed as integers if `in` has an integer
// dtype.
void run_unary(UnaryMode mode, const at::Tensor& out, const at::Tensor& in);
void run_unary(UnaryMode mode, const at::Tensor& out, const at::Tensor& in, const at::Scalar& alpha);
void run_unary(
    UnaryMode mode, const at::Tensor& out, const at::Tensor& in, const at::Scalar& alpha, const at::Scalar& beta);
// The inputs are broadcast.
void run_binary(BinaryMode mode, const at::Tensor& out, const at::Tensor& left, const at::Tensor& right);
void run_binary(
    BinaryMode mode, const at::Tensor& out, const at::Tensor& left, const at::Tensor& right, const at::Scalar& alpha);
void run_ternary(
    TernaryMode mode, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c);
void run_ternary(
    TernaryMode mode, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
    const at::Scalar& alpha);
void run_fill(const at::Tensor& out, const at::Scalar& value);
// Fills the elements for which the mask, a BOOL tensor of out's shape, is true.
void run_masked_fill(const at::Tensor& out, const at::Tensor& mask, const at::Scalar& value);

// Converts with CAST. The tensors must satisfy the predicates.
void convert(const at::Tensor& out, const at::Tensor& in);
// Returns the tensor itself if it has that dtype.
Operand in_dtype(const at::Tensor& tensor, at::ScalarType dtype);
Operand in_dtype(at::Tensor&& tensor, at::ScalarType dtype);
// Returns the number as a 0-dim tensor on the device, for calls that need a tensor operand.
at::Tensor number_on_device(const at::Scalar& value, const at::Tensor& like, at::ScalarType dtype);

// Returns a tensor with the shape of `like`, and with its strides if it is dense.
at::Tensor empty_as(const at::Tensor& like, at::ScalarType dtype);
// Returns a contiguous tensor on like's device. Dispatching at::empty would cost as much as a small operator.
inline at::Tensor new_empty(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::detail::empty_musa(sizes, dtype, like.device().index());
}
inline at::Tensor new_empty(const at::Tensor& like, at::IntArrayRef sizes) {
  return new_empty(like, sizes, like.scalar_type());
}

// Calls write(result) with a tensor of `dtype`: `out` itself, or a temporary that is converted to `out` afterwards.
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

// The same with a contiguous result, for muDNN operations that support no other layout.
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
