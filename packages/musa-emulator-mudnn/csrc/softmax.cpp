// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Softmax.
#include "cpu_stubs.h"

#include <ATen/native/cpu/SoftmaxKernel.h>
#include <ATen/ops/_log_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_softmax_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/logsumexp_native.h>

#include "support/call.h"
#include "support/alias.h"
#include "support/outputs.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

// Longer rows do not fit into on-chip memory, so the maximum and sum of the row need a workspace.
constexpr int64_t kRowOnChip = 65536;
// Number of elements that take about a microsecond.
constexpr int64_t kBrief = 4096;

bool reduced(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

// Checks that all calls share, for operands with the shape of `in`.
bool check_operands(Call& call, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  for (const Tensor* tensor : tensors) {
    if (!call.require(TensorAccess::present(*tensor), Status::INVALID_PARAMETER, "an operand is absent") ||
        !call.require(floating(*tensor), Status::NOT_SUPPORTED, "an operand does not have a floating type") ||
        !call.require(same_shape(*tensor, first), Status::INVALID_PARAMETER, "the operands differ in shape") ||
        !call.require(TensorAccess::contiguous(*tensor), Status::NOT_SUPPORTED, "an operand is not contiguous")) {
      return false;
    }
  }
  return true;
}

// Returns the dimension counted from the front, or -1 if a check fails. A 0-dim tensor counts as 1-d.
int checked_dim(Call& call, const Tensor& in, int dim) {
  const int ndim = std::max(TensorAccess::ndim(in), 1);
  return call.require(dim >= -ndim && dim < ndim, Status::INVALID_PARAMETER, "the dimension is out of range")
      ? (dim < 0 ? dim + ndim : dim)
      : -1;
}

// Whether out has the shape of in without the dimension, or with size 1 in its place.
bool reduces_to(const Tensor& out, const Tensor& in, int dim) {
  const int ndim = TensorAccess::ndim(in);
  const bool kept = TensorAccess::ndim(out) == ndim;
  if (!kept && TensorAccess::ndim(out) != ndim - 1) {
    return false;
  }
  for (int i = 0, j = 0; i < ndim; ++i) {
    if (i == dim && !kept) {
      continue;
    }
    if (TensorAccess::dims(out)[j++] != (i == dim ? 1 : TensorAccess::dims(in)[i])) {
      return false;
    }
  }
  return true;
}

size_t workspace_bytes(const Tensor& in, int dim) {
  const int64_t row = TensorAccess::ndim(in) > 0 ? TensorAccess::dims(in)[dim] : 1;
  return row > kRowOnChip ? static_cast<size_t>(TensorAccess::elements(in) / row) * 2 * sizeof(float) : 0;
}

void run_kernel(bool log, int dim, const at::Tensor& out, const at::Tensor& in) {
  if constexpr (!kOnHost) {
    at::Tensor result = out;
    const Outputs given(result);
    log ? ops::_log_softmax_out(result, in, dim, false) : ops::_softmax_out(result, in, dim, false);
    given.keep();
    return;
  }
  if (dim == in.dim() - 1) {
    log ? at::native::log_softmax_lastdim_kernel(at::kCPU, out, in)
        : at::native::softmax_lastdim_kernel(at::kCPU, out, in);
  } else {
    log ? at::native::log_softmax_kernel(at::kCPU, out, in, dim) : at::native::softmax_kernel(at::kCPU, out, in, dim);
  }
}

void run_forward(bool log, int dim, at::Tensor& out, const at::Tensor& in) {
  if (out.scalar_type() == in.scalar_type()) {
    // The kernels require contiguous tensors with at least one dimension.
    in.dim() > 0 ? run_kernel(log, dim, out, in) : run_kernel(log, dim, out.view(1), in.view(1));
    return;
  }
  const at::Tensor wide = in.to(out.scalar_type());
  run_forward(log, dim, out, wide);
}

void run_logsumexp(int dim, bool keep, at::Tensor& out, const at::Tensor& in) {
  if (out.scalar_type() == in.scalar_type() && !reduced(in)) {
    const Outputs given(out);
    at::native::logsumexp_out(in, dim, keep, out);
    given.keep();
    return;
  }
  // torch would compute the exponentials in the 16-bit type.
  at::native::copy_(out, at::native::logsumexp(reduced(in) ? in.to(at::kFloat) : in, dim, keep));
}

void run_backward(bool log, int dim, at::Tensor& grad_in, const at::Tensor& out, const at::Tensor& grad_out) {
  if (grad_in.scalar_type() != out.scalar_type()) {
    at::Tensor wide = grad_in.to(out.scalar_type());
    run_backward(log, dim, wide, out, grad_out);
    at::native::copy_(grad_in, wide);
    return;
  }
  const Outputs given(grad_in);
  log ? ops::_log_softmax_backward_data_out(grad_in, grad_out, out, dim, grad_in.scalar_type())
      : ops::_softmax_backward_data_out(grad_in, grad_out, out, dim, grad_in.scalar_type());
  given.keep();
}

} // namespace

Status Softmax::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Softmax::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status Softmax::SetAlgorithm(Algorithm algorithm) {
  algorithm_ = algorithm;
  return Status::SUCCESS;
}

Status Softmax::Run(Handle& handle, Tensor& out, const Tensor& in, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Softmax::Run">(handle, {&out, &in}, [&](Call& call) {
    const bool sums = mode_ == Mode::LOGSUMEXP;
    if (!(sums ? check_operands(call, {&in}) && check_operands(call, {&out}) : check_operands(call, {&in, &out})) ||
        !call.require(
            same_type(out, in) || has_type(out, {Tensor::Type::FLOAT}), Status::NOT_SUPPORTED,
            "out has neither the type of in nor FLOAT")) {
      return call.status();
    }
    const int dim = checked_dim(call, in, dim_);
    if (dim < 0) {
      return call.status();
    }
    if (kOnHost && !sums && same_type(out, in) && dim == TensorAccess::ndim(in) - 1 &&
        TensorAccess::elements(in) <= kBrief) {
      // Calls torch's kernel directly, without the dispatcher, so no thread-local modes need to be set.
      return call.enqueue_brief([log = mode_ == Mode::LOGSOFTMAX, dim, out = out, in = in] {
        const AliasScope aliases;
        run_kernel(log, dim, lent_alias(out), lent_alias(in));
      });
    }
    if (!sums) {
      return call.enqueue(
          workspace, workspace_bytes(in, dim),
          [log = mode_ == Mode::LOGSOFTMAX, dim, out = out, in = in] {
            run_forward(log, dim, lent_alias(out), lent_alias(in));
          },
          /*optional=*/true);
    }
    const bool keep = TensorAccess::ndim(out) == TensorAccess::ndim(in) && TensorAccess::ndim(in) > 0;
    if (!call.require(
            reduces_to(out, in, dim), Status::INVALID_PARAMETER,
            "out does not have the shape of in without the dimension")) {
      return call.status();
    }
    return call.enqueue(
        workspace, workspace_bytes(in, dim),
        [dim, keep, out = out, in = in] {
          at::Tensor result = alias(out);
          run_logsumexp(dim, keep, result, alias(in));
        },
        /*optional=*/true);
  });
}

Status Softmax::RunBwd(
    Handle& handle, Tensor& grad_in, const Tensor& out, const Tensor& grad_out,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Softmax::RunBwd">(handle, {&grad_in, &out, &grad_out}, [&](Call& call) {
    if (!call.require(mode_ != Mode::LOGSUMEXP, Status::NOT_SUPPORTED, "LOGSUMEXP has no backward pass") ||
        !check_operands(call, {&grad_in, &out, &grad_out}) ||
        !call.require(same_type(out, grad_out), Status::INVALID_PARAMETER, "out and its gradient differ in type") ||
        !call.require(
            same_type(grad_in, out) || has_type(out, {Tensor::Type::FLOAT}), Status::NOT_SUPPORTED,
            "out has neither the type of grad_in nor FLOAT")) {
      return call.status();
    }
    const int dim = checked_dim(call, out, dim_);
    if (dim < 0) {
      return call.status();
    }
    return call.enqueue(
        workspace, workspace_bytes(out, dim),
        [log = mode_ == Mode::LOGSOFTMAX, dim, grad_in = grad_in, out = out, grad_out = grad_out] {
          at::Tensor result = alias(grad_in);
          run_backward(log, dim, result, alias(out), alias(grad_out));
        },
        /*optional=*/true);
  });
}

} // namespace musa::dnn
