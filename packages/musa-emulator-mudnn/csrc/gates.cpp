// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Glu, SwiGlu, Rope.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/cos_cpu_dispatch.h>
#include <ATen/ops/glu_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/neg_cpu_dispatch.h>
#include <ATen/ops/silu_backward_cpu_dispatch.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/sin_cpu_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>

#include <algorithm>

#include "support/alias.h"
#include "support/call.h"
#include "support/outputs.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

bool accept_floating(Call& call, std::initializer_list<const Tensor*> tensors) {
  using Type = Tensor::Type;
  const Tensor& first = **tensors.begin();
  for (const Tensor* tensor : tensors) {
    if (!call.require(TensorAccess::present(*tensor), Status::INVALID_PARAMETER, "an operand is absent") ||
        !call.require(
            has_type(*tensor, {TensorAccess::type(first)}), Status::INVALID_PARAMETER, "the operands differ in type")) {
      return false;
    }
  }
  return call.require(
      has_type(first, {Type::HALF, Type::BFLOAT16, Type::FLOAT, Type::DOUBLE}), Status::NOT_SUPPORTED,
      "the operands do not have a floating type");
}

// Whether `half` has the shape of `whole`, with half as many elements along the axis.
bool is_half(const Tensor& half, const Tensor& whole, int axis) {
  if (TensorAccess::ndim(half) != TensorAccess::ndim(whole)) {
    return false;
  }
  for (int i = 0; i < TensorAccess::ndim(whole); ++i) {
    if (TensorAccess::dims(whole)[i] != TensorAccess::dims(half)[i] * (i == axis ? 2 : 1)) {
      return false;
    }
  }
  return true;
}

// Converts to the type of the computation, so that the result is rounded once at the end instead of after each step.
at::Tensor widened(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kHalf && tensor.scalar_type() != at::kBFloat16) {
    return tensor;
  }
  at::Tensor wide = new_tensor(tensor.sizes(), at::kFloat);
  at::native::copy_(wide, tensor);
  return wide;
}

at::Tensor half_of(const at::Tensor& tensor, int64_t which) {
  const int64_t size = tensor.size(-1) / 2;
  return tensor.narrow(-1, which * size, size);
}

// Returns every second element along the last dimension.
at::Tensor every_second(const at::Tensor& tensor, int64_t first) { return tensor.slice(-1, first, tensor.size(-1), 2); }

void copy_into(at::Tensor target, const at::Tensor& source) { at::native::copy_(target, source); }

// Maps each pair (a, b) to (-b, a).
at::Tensor quarter_turn(const at::Tensor& x, bool interleaved) {
  at::Tensor turned = new_tensor(x.sizes(), x.scalar_type());
  const auto part = interleaved ? every_second : half_of;
  copy_into(part(turned, 0), ops::neg(part(x, 1)));
  copy_into(part(turned, 1), part(x, 0));
  return turned;
}

struct Rotation {
  bool interleaved;
  bool latent;
  int64_t sequence; // dimension of the positions
};

// The frequencies are angles [S, R], with any number of dimensions of size 1 between; or pairs of cosine and sine,
// [S, R / 2, 2].
bool holds_pairs(const Tensor& freqs) {
  return TensorAccess::ndim(freqs) == 3 && TensorAccess::dims(freqs)[2] == 2 && TensorAccess::dims(freqs)[1] != 1;
}

// Returns the number of rotated elements of the last dimension, or 0 if the operand has neither form.
int64_t rotated(const Tensor& freqs) {
  const int ndim = TensorAccess::ndim(freqs);
  const int64_t* const dims = TensorAccess::dims(freqs);
  if (holds_pairs(freqs)) {
    return dims[1] * 2;
  }
  if (ndim < 2 || std::any_of(dims + 1, dims + ndim - 1, [](int64_t dim) { return dim != 1; })) {
    return 0;
  }
  return dims[ndim - 1];
}

void rotate(const Rotation& rotation, const Tensor& out, const Tensor& in, const Tensor& freqs, bool forward) {
  at::Tensor result = alias(out);
  const at::Tensor source = alias(in);
  const int64_t size = rotated(freqs);
  const int64_t length = source.size(rotation.sequence);
  const auto type = source.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;

  at::Tensor table = new_tensor(alias(freqs).sizes(), type);
  at::native::copy_(table, alias(freqs));
  at::Tensor cosine;
  at::Tensor sine;
  if (holds_pairs(freqs)) {
    // Both elements of a pair use the same cosine and sine.
    cosine = new_tensor({table.size(0), size}, type);
    sine = new_tensor({table.size(0), size}, type);
    const auto part = rotation.interleaved ? every_second : half_of;
    for (const int64_t which : {0, 1}) {
      copy_into(part(cosine, which), table.select(2, 0));
      copy_into(part(sine, which), table.select(2, 1));
    }
  } else {
    table = table.view({table.size(0), size});
    cosine = ops::cos(table);
    sine = ops::sin(table);
  }
  c10::SmallVector<int64_t, 4> shape(static_cast<size_t>(source.dim()), 1);
  shape[static_cast<size_t>(rotation.sequence)] = length;
  shape.back() = size;
  cosine = cosine.narrow(0, 0, length).view(shape);
  sine = sine.narrow(0, 0, length).view(shape);

  at::Tensor x = widened(source.narrow(-1, 0, size));
  at::Tensor y;
  if (forward) {
    if (rotation.latent) { // the input has adjacent pairs; the result has them half a dimension apart
      at::Tensor apart = new_tensor(x.sizes(), x.scalar_type());
      copy_into(half_of(apart, 0), every_second(x, 0));
      copy_into(half_of(apart, 1), every_second(x, 1));
      x = apart;
    }
    y = ops::add(ops::mul(x, cosine), ops::mul(quarter_turn(x, rotation.interleaved), sine), 1);
  } else {
    y = ops::sub(ops::mul(x, cosine), quarter_turn(ops::mul(x, sine), rotation.interleaved), 1);
  }
  const at::Tensor rest = source.narrow(-1, size, source.size(-1) - size);
  if (result.data_ptr() != source.data_ptr() && rest.size(-1) > 0) {
    copy_into(result.narrow(-1, size, rest.size(-1)), rest);
  }
  const at::Tensor target = result.narrow(-1, 0, size);
  if (!forward && rotation.latent) {
    copy_into(every_second(target, 0), half_of(y, 0));
    copy_into(every_second(target, 1), half_of(y, 1));
  } else {
    copy_into(target, y);
  }
}

bool accepts(Call& call, const Rotation& rotation, const Tensor& out, const Tensor& in, const Tensor& freqs) {
  using Type = Tensor::Type;
  if (!accept_floating(call, {&in, &out}) ||
      !call.require(TensorAccess::present(freqs), Status::INVALID_PARAMETER, "the frequencies are absent") ||
      !call.require(same_shape(out, in), Status::INVALID_PARAMETER, "out and in differ in shape") ||
      !call.require(
          TensorAccess::ndim(in) == 3 || TensorAccess::ndim(in) == 4, Status::INVALID_PARAMETER,
          "the input has neither three nor four dimensions") ||
      !call.require(
          has_type(freqs, {Type::HALF, Type::BFLOAT16, Type::FLOAT, Type::DOUBLE}), Status::NOT_SUPPORTED,
          "the frequencies do not have a floating type")) {
    return false;
  }
  const int64_t size = rotated(freqs);
  return call.require(
             size > 0 && size % 2 == 0 && size <= TensorAccess::dims(in)[TensorAccess::ndim(in) - 1],
             Status::INVALID_PARAMETER, "the frequencies do not match the input's last dimension") &&
      call.require(
          TensorAccess::dims(freqs)[0] >= TensorAccess::dims(in)[rotation.sequence], Status::INVALID_PARAMETER,
          "there are fewer frequencies than positions in the input");
}

} // namespace

Status Glu::SetAxis(int axis) {
  axis_ = axis;
  return Status::SUCCESS;
}

Status Glu::Run(Handle& handle, Tensor& out, const Tensor& in) const {
  return call<"musa::dnn::Glu::Run">(handle, {&out, &in}, [&](Call& call) {
    if (!accept_floating(call, {&in, &out})) {
      return call.status();
    }
    const int ndim = TensorAccess::ndim(in);
    const int axis = axis_ < 0 ? axis_ + ndim : axis_;
    if (!call.require(axis >= 0 && axis < ndim, Status::INVALID_PARAMETER, "the input has no such axis") ||
        !call.require(
            is_half(out, in, axis), Status::INVALID_PARAMETER, "out is not half of the input along the axis")) {
      return call.status();
    }
    return call.enqueue([axis, out = out, in = in] {
      at::Tensor result = alias(out);
      const Outputs given(result);
      ops::glu_out(result, alias(in), axis);
      given.keep();
    });
  });
}

Status SwiGlu::Run(Handle& handle, Tensor& out, const Tensor& in) const {
  return call<"musa::dnn::SwiGlu::Run">(handle, {&out, &in}, [&](Call& call) {
    if (!accept_floating(call, {&in, &out}) ||
        !call.require(
            TensorAccess::ndim(in) > 0 && is_half(out, in, TensorAccess::ndim(in) - 1), Status::INVALID_PARAMETER,
            "out is not half of the input along the last dimension")) {
      return call.status();
    }
    return call.enqueue([out = out, in = in] {
      const at::Tensor both = widened(alias(in));
      copy_into(alias(out), ops::mul(ops::silu(half_of(both, 0)), half_of(both, 1)));
    });
  });
}

Status SwiGlu::RunBwd(Handle& handle, Tensor& grad_in, const Tensor& in, const Tensor& grad_out) const {
  return call<"musa::dnn::SwiGlu::RunBwd">(handle, {&grad_in, &in, &grad_out}, [&](Call& call) {
    if (!accept_floating(call, {&in, &grad_in, &grad_out}) ||
        !call.require(same_shape(grad_in, in), Status::INVALID_PARAMETER, "grad_in and in differ in shape") ||
        !call.require(
            TensorAccess::ndim(in) > 0 && is_half(grad_out, in, TensorAccess::ndim(in) - 1), Status::INVALID_PARAMETER,
            "grad_out is not half of the input along the last dimension")) {
      return call.status();
    }
    return call.enqueue([grad_in = grad_in, in = in, grad_out = grad_out] {
      const at::Tensor result = alias(grad_in);
      const at::Tensor both = widened(alias(in));
      const at::Tensor gradient = widened(alias(grad_out));
      // Both are computed before either is written, because the gradient may be the input's memory.
      const at::Tensor first = ops::silu_backward(ops::mul(gradient, half_of(both, 1)), half_of(both, 0));
      const at::Tensor second = ops::mul(gradient, ops::silu(half_of(both, 0)));
      copy_into(half_of(result, 0), first);
      copy_into(half_of(result, 1), second);
    });
  });
}

Status Rope::SetRotaryInterleaved(bool interleaved) {
  interleaved_ = interleaved;
  return Status::SUCCESS;
}

Status Rope::SetBatchFirst(bool batch_first) {
  batch_first_ = batch_first;
  return Status::SUCCESS;
}

Status Rope::SetMultiLatentAttention(bool latent) {
  latent_ = latent;
  return Status::SUCCESS;
}

// With four dimensions: batch, positions, heads, elements, or positions first without SetBatchFirst. With three: no
// batch.
Status Rope::Run(Handle& handle, Tensor& out, const Tensor& in, const Tensor& freqs) const {
  return call<"musa::dnn::Rope::Run">(handle, {&out, &in, &freqs}, [&](Call& call) {
    const Rotation rotation{interleaved_, latent_, batch_first_ && TensorAccess::ndim(in) == 4 ? 1 : 0};
    if (!accepts(call, rotation, out, in, freqs)) {
      return call.status();
    }
    return call.enqueue([rotation, out = out, in = in, freqs = freqs] { rotate(rotation, out, in, freqs, true); });
  });
}

Status Rope::RunBwd(Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& freqs) const {
  return call<"musa::dnn::Rope::RunBwd">(handle, {&grad_in, &grad_out, &freqs}, [&](Call& call) {
    const Rotation rotation{interleaved_, latent_, batch_first_ && TensorAccess::ndim(grad_out) == 4 ? 1 : 0};
    if (!accepts(call, rotation, grad_in, grad_out, freqs)) {
      return call.status();
    }
    return call.enqueue([rotation, grad_in = grad_in, grad_out = grad_out, freqs = freqs] {
      rotate(rotation, grad_in, grad_out, freqs, false);
    });
  });
}

} // namespace musa::dnn
