// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Softmax, log softmax, and their gradients.
#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_meta.h>
#include <musa_runtime/mudnn.h>

#include <algorithm>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

using Mode = dnn::Softmax::Mode;

dnn::Softmax operation(Mode mode, int64_t dim, const at::Tensor& like) {
  dnn::Softmax op;
  check(op.SetMode(mode), "Softmax::SetMode");
  check(op.SetAlgorithm(dnn::Softmax::Algorithm::ACCURATE), "Softmax::SetAlgorithm");
  check(op.SetDim(static_cast<int>(dim < 0 ? dim + std::max<int64_t>(like.dim(), 1) : dim)), "Softmax::SetDim");
  return op;
}

// A 0-dim tensor is described as a row of one element.
dnn::Tensor describe_row(const at::Tensor& tensor, Access access = Access::Write) {
  return tensor.dim() == 0 ? describe_as(tensor, {1}, {1}, access) : describe(tensor, access);
}

// half_to_float converts HALF to FLOAT. torch lets devices fuse the conversion; here it is done first.
template <Mode mode>
void softmax(const at::Tensor& self, int64_t dim, bool half_to_float, const at::Tensor& out) {
  const at::ScalarType dtype = half_to_float ? at::kFloat : self.scalar_type();
  const Operand in = contiguous(in_dtype(self, dtype));
  const dnn::Softmax op = operation(mode, dim, self);
  write_contiguous(dtype, out, [&](const at::Tensor& result) {
    const OnDevice on(result);
    dnn::Tensor described = describe_row(result);
    check(op.Run(on.handle(), described, describe_row(in, kRead), on.workspace()), "Softmax::Run", {&result, &*in});
  });
}

template <Mode mode>
void softmax_backward(
    const at::Tensor& grad_output, const at::Tensor& output, int64_t dim, at::ScalarType /*input_dtype: out's*/,
    const at::Tensor& out) {
  const Operand gradient = contiguous(grad_output);
  const Operand forward = contiguous(output);
  const dnn::Softmax op = operation(mode, dim, output);
  write_contiguous(output.scalar_type(), out, [&](const at::Tensor& result) {
    const OnDevice on(result);
    dnn::Tensor described = describe_row(result);
    check(
        op.RunBwd(on.handle(), described, describe_row(forward, kRead), describe_row(gradient, kRead), on.workspace()),
        "Softmax::RunBwd", {&result, &*forward, &*gradient});
  });
}

bool softmax_served(const at::Tensor& self, int64_t /*dim*/, bool half_to_float) {
  return serves<float_types>(self) && (!half_to_float || self.scalar_type() == at::kHalf);
}

bool softmax_backward_served(
    const at::Tensor& grad_output, const at::Tensor& output, int64_t /*dim*/, at::ScalarType input_dtype) {
  const at::ScalarType dtype = output.scalar_type();
  return serves<float_types>(grad_output, output) && grad_output.scalar_type() == dtype &&
      grad_output.sizes() == output.sizes() &&
      (input_dtype == dtype || (input_dtype == at::kHalf && dtype == at::kFloat));
}

} // namespace

void declare_softmax(OpPack& pack) {
  structured<at::meta::structured__softmax, softmax<Mode::SOFTMAX>, softmax_served>(
      pack, {"aten::_softmax", "aten::_softmax.out"});
  structured<at::meta::structured__log_softmax, softmax<Mode::LOGSOFTMAX>, softmax_served>(
      pack, {"aten::_log_softmax", "aten::_log_softmax.out"});
  structured<at::meta::structured__softmax_backward_data, softmax_backward<Mode::SOFTMAX>, softmax_backward_served>(
      pack, {"aten::_softmax_backward_data", "aten::_softmax_backward_data.out"});
  structured<
      at::meta::structured__log_softmax_backward_data, softmax_backward<Mode::LOGSOFTMAX>, softmax_backward_served>(
      pack, {"aten::_log_softmax_backward_data", "aten::_log_softmax_backward_data.out"});
}

} // namespace musa_ops_mudnn
