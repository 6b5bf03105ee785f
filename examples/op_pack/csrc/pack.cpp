// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The pack's C++ side: schemas, an operator of each kind, predicates, and their registration.
#include <ATen/ATen.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/mudnn.h>
#include <musa_runtime/op_pack.h>
#include <torch/library.h>

#include "kernels.h"

namespace {

namespace mudnn = musa_runtime::mudnn;

// ---- an operator of torch, composed of other operators

at::Tensor relu(const at::Tensor& self) { return at::clamp_min(self, 0); }

// The next provider serves integers.
bool serves_relu(const at::Tensor& self) { return at::isFloatingType(self.scalar_type()); }

// ---- a new operator, in plain C++

at::Tensor scale_shift(const at::Tensor& self, double scale, double shift) { return self * scale + shift; }

// ---- a kernel

at::Tensor bias_relu(const at::Tensor& self, const at::Tensor& bias) {
  TORCH_CHECK_VALUE(
      self.scalar_type() == at::kFloat && bias.scalar_type() == at::kFloat && self.dim() > 0 && bias.dim() == 1 &&
          bias.size(0) == self.size(-1) && bias.device() == self.device(),
      "bias_relu: expected float32 tensors of one device, the bias as long as the last dimension, but got ",
      self.toString(), self.sizes(), " on ", self.device(), " and ", bias.toString(), bias.sizes(), " on ",
      bias.device());
  const musa_runtime::Operand in = musa_runtime::contiguous(self);
  const musa_runtime::Operand row = musa_runtime::contiguous(bias);
  at::Tensor out = at::empty(self.sizes(), self.options());
  if (out.numel() != 0) {
    const c10::musa::MUSAGuard guard(self.device());
    musa_demo::launch_bias_relu(
        in->const_data_ptr<float>(), row->const_data_ptr<float>(), out.mutable_data_ptr<float>(), out.numel(),
        self.size(-1), c10::musa::getCurrentMUSAStream().stream());
    C10_MUSA_KERNEL_LAUNCH_CHECK();
  }
  return out;
}

// ---- a call of muDNN

at::Tensor softmax_rows(const at::Tensor& self) {
  TORCH_CHECK_VALUE(
      self.scalar_type() == at::kFloat && self.dim() > 0 && self.numel() > 0,
      "softmax_rows: expected a float32 tensor with elements and a dimension, but got ", self.toString(), self.sizes());
  const musa_runtime::Operand in = musa_runtime::contiguous(self);
  at::Tensor out = at::empty(self.sizes(), self.options());
  musa::dnn::Softmax op;
  mudnn::check(op.SetMode(musa::dnn::Softmax::Mode::SOFTMAX), "Softmax::SetMode");
  mudnn::check(op.SetDim(static_cast<int>(self.dim() - 1)), "Softmax::SetDim");
  const mudnn::OnDevice on(out);
  musa::dnn::Tensor result = mudnn::describe(out);
  mudnn::check(op.Run(on.handle(), result, mudnn::operand(in), on.workspace()), "Softmax::Run", {&out, &*in});
  return out;
}

TORCH_LIBRARY(musa_demo, library) {
  library.def("scale_shift(Tensor self, float scale, float shift) -> Tensor");
  library.def("bias_relu(Tensor self, Tensor bias) -> Tensor");
  library.def("softmax_rows(Tensor self) -> Tensor");
}

} // namespace

MUSA_OP_PACK(demo, pack) {
  pack.impl("aten::relu", TORCH_FN(relu), TORCH_FN(serves_relu));
  pack.impl("musa_demo::scale_shift", TORCH_FN(scale_shift));
  pack.impl("musa_demo::bias_relu", TORCH_FN(bias_relu));
  pack.impl("musa_demo::softmax_rows", TORCH_FN(softmax_rows));
}
