// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Dropout, and the mask that attention uses too.
#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/where_cpu_dispatch.h>

#include "support/alias.h"
#include "support/call.h"
#include "support/draw.h"
#include "support/outputs.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

bool accepts(Call& call, const Tensor& out, const Tensor& in, const Tensor& mask) {
  using Type = Tensor::Type;
  return call.require(
             TensorAccess::present(out) && TensorAccess::present(in) && TensorAccess::present(mask),
             Status::INVALID_PARAMETER, "an operand is absent") &&
      call.require(
          same_shape(out, in) && same_shape(mask, in), Status::INVALID_PARAMETER, "the operands differ in shape") &&
      call.require(has_type(mask, {Type::BOOL}), Status::INVALID_PARAMETER, "the mask is not BOOL") &&
      call.require(
          has_type(in, {Type::HALF, Type::BFLOAT16, Type::FLOAT, Type::DOUBLE}), Status::NOT_SUPPORTED,
          "the input is not floating") &&
      call.require(has_type(out, {TensorAccess::type(in)}), Status::INVALID_PARAMETER, "out and in differ in type");
}

// Selects instead of multiplying by the mask, so that dropped elements are 0 even if they were infinite.
void keep_scaled(at::Tensor& out, const at::Tensor& in, const at::Tensor& keep, double scale) {
  const Outputs given(out);
  if constexpr (!kOnHost) { // where() copies its scalar to the device, which cannot be captured
    ops::mul_out(out, in, at::native::wrapped_scalar_tensor(scale));
    given.keep();
    out.masked_fill_(keep.logical_not(), 0);
    return;
  }
  const at::Tensor scaled = ops::mul(in, at::native::wrapped_scalar_tensor(scale));
  ops::where_out(out, keep, scaled, at::native::wrapped_scalar_tensor(0.0));
  given.keep();
}

} // namespace

Status Dropout::SetP(double p) {
  if (!(p >= 0 && p <= 1)) {
    return Status::INVALID_PARAMETER;
  }
  p_ = p;
  return Status::SUCCESS;
}

Status Dropout::SetScale(double scale) {
  scale_ = scale;
  return Status::SUCCESS;
}

Status Dropout::SetSeed(uint64_t seed) {
  seed_ = seed;
  device_seed_ = nullptr;
  return Status::SUCCESS;
}

Status Dropout::SetSeed(const uint64_t* device_seed) {
  if (device_seed == nullptr) {
    return Status::INVALID_PARAMETER;
  }
  device_seed_ = device_seed;
  return Status::SUCCESS;
}

Status Dropout::SetOffset(uint64_t offset) {
  offset_ = offset;
  device_offset_ = nullptr;
  in_graph_ = 0;
  return Status::SUCCESS;
}

Status Dropout::SetOffset(const uint64_t* device_offset, uint64_t in_graph) {
  if (device_offset == nullptr) {
    return Status::INVALID_PARAMETER;
  }
  device_offset_ = device_offset;
  in_graph_ = in_graph;
  return Status::SUCCESS;
}

Status Dropout::RunDropout(Handle& handle, Tensor& out, const Tensor& in, Tensor& mask) const {
  return call<"musa::dnn::Dropout::RunDropout">(handle, {&out, &in, &mask}, [&](Call& call) {
    if (!accepts(call, out, in, mask)) {
      return call.status();
    }
    return call.enqueue([p = p_, seed = seed_, offset = offset_, device_seed = device_seed_,
                         device_offset = device_offset_, in_graph = in_graph_, out = out, in = in, mask = mask] {
      at::Tensor result = alias(out);
      at::Tensor keep = alias(mask);
      const bool direct = TensorAccess::contiguous(mask);
      at::Tensor drawn = direct ? keep : at::Tensor(new_tensor(keep.sizes(), at::kBool));
      draw_keep_mask(
          drawn, p, {device_seed != nullptr ? 0 : seed, device_seed},
          {device_offset != nullptr ? in_graph : offset, device_offset});
      if (!direct) {
        at::native::copy_(keep, drawn);
      }
      keep_scaled(result, alias(in), drawn, p < 1 ? 1 / (1 - p) : 0);
    });
  });
}

Status Dropout::RunDropoutBwd(Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& mask) const {
  return call<"musa::dnn::Dropout::RunDropoutBwd">(handle, {&grad_in, &grad_out, &mask}, [&](Call& call) {
    if (!accepts(call, grad_in, grad_out, mask)) {
      return call.status();
    }
    return call.enqueue([scale = scale_, grad_in = grad_in, grad_out = grad_out, mask = mask] {
      at::Tensor result = alias(grad_in);
      keep_scaled(result, alias(grad_out), alias(mask), scale);
    });
  });
}

} // namespace musa::dnn
