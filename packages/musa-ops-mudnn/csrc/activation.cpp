// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Activations and their gradients. Functions without a muDNN mode are composed of several calls, in float32 for 16-bit
// dtypes.
#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/elu_backward_meta.h>
#include <ATen/ops/elu_meta.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/glu_meta.h>
#include <ATen/ops/hardshrink_backward_meta.h>
#include <ATen/ops/hardshrink_meta.h>
#include <ATen/ops/hardsigmoid_backward_meta.h>
#include <ATen/ops/hardsigmoid_meta.h>
#include <ATen/ops/leaky_relu_backward_meta.h>
#include <ATen/ops/leaky_relu_meta.h>
#include <ATen/ops/mish_meta.h>
#include <ATen/ops/sigmoid_backward_meta.h>
#include <ATen/ops/silu_backward_meta.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/softplus_backward_meta.h>
#include <ATen/ops/softplus_meta.h>
#include <ATen/ops/softshrink_backward_meta.h>
#include <ATen/ops/softshrink_meta.h>
#include <ATen/ops/tanh_backward_meta.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <musa_runtime/mudnn.h>

#include <cmath>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/parameters.h"
#include "support/structured.h"

namespace musa_ops_mudnn {

namespace {

template <typename... Scalars>
bool are_parameters(const Scalars&... scalars) {
  return (is_parameter(scalars) && ...);
}

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
}

// Return new tensors with the result of mode(in) and mode(left, right).
at::Tensor made(UnaryMode mode, const at::Tensor& in) {
  at::Tensor out = empty_as(in, in.scalar_type());
  run_unary(mode, out, in);
  return out;
}
at::Tensor made(UnaryMode mode, const at::Tensor& in, double alpha) {
  at::Tensor out = empty_as(in, in.scalar_type());
  run_unary(mode, out, in, alpha);
  return out;
}
at::Tensor product(const at::Tensor& left, const at::Tensor& right) {
  at::Tensor out = empty_as(left, left.scalar_type());
  run_binary(BinaryMode::MUL, out, left, right);
  return out;
}
at::Tensor mask_of(UnaryMode comparison, const at::Tensor& in, double alpha) {
  at::Tensor out = empty_as(in, at::kBool);
  run_unary(comparison, out, in, alpha);
  return out;
}

// Views with the result's shape, because it is not documented whether the gradient modes broadcast.
Operand shaped(const at::Tensor& tensor, const at::Tensor& like) {
  return tensor.sizes() == like.sizes() ? Operand::borrowed(tensor) : Operand(tensor.expand(like.sizes()));
}
Operand shaped(Operand&& tensor, const at::Tensor& like) {
  return tensor->sizes() == like.sizes() ? std::move(tensor) : Operand(tensor->expand(like.sizes()));
}

// ---- Operators with one call

template <UnaryMode mode>
void activation(Common common, const at::Tensor& self, const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  write_as(dtype, out, [&](const at::Tensor& result) { run_unary(mode, result, in_dtype(self, dtype)); });
}

// For RELU and HARDSWISH, whose operators are not structured.
template <UnaryMode mode>
at::Tensor plain(const at::Tensor& self) {
  return made(mode, self);
}
template <UnaryMode mode>
at::Tensor& plain_out(const at::Tensor& self, at::Tensor& out) {
  at::TensorIterator::unary_op(out, self); // resizes out and checks it
  run_unary(mode, out, self);
  return out;
}
template <UnaryMode mode>
at::Tensor& plain_in_place(at::Tensor& self) {
  return plain_out<mode>(self, self);
}

void elu(
    const at::Tensor& self, const at::Scalar& alpha, const at::Scalar& scale, const at::Scalar& /*input_scale*/,
    const at::Tensor& out) {
  run_unary(UnaryMode::ELU, out, self, alpha.toDouble());
  if (scale.toDouble() != 1) {
    run_unary(UnaryMode::MUL, out, out, scale.toDouble());
  }
}

// ELU has no scales. The output is scaled by a second call, unless the intermediate result would be rounded.
bool elu_served(
    const at::Tensor& self, const at::Scalar& alpha, const at::Scalar& scale, const at::Scalar& input_scale) {
  return serves<float_types>(self) && are_parameters(alpha, scale, input_scale) && input_scale.toDouble() == 1 &&
      (scale.toDouble() == 1 || !contains(reduced_types, self.scalar_type()));
}

bool is_known(c10::string_view approximate) { return approximate == "none" || approximate == "tanh"; }

void gelu(Common /*common*/, const at::Tensor& self, c10::string_view approximate, const at::Tensor& out) {
  run_unary(approximate == "tanh" ? UnaryMode::GELU_TANH : UnaryMode::GELU, out, self);
}

bool gelu_served(const at::Tensor& self, c10::string_view approximate) {
  return serves<float_types>(self) && is_known(approximate);
}

void leaky_relu(const at::Tensor& self, const at::Scalar& slope, const at::Tensor& out) {
  run_unary(UnaryMode::LEAKY_RELU, out, self, slope.toDouble());
}

bool leaky_relu_served(const at::Tensor& self, const at::Scalar& slope) {
  return serves<float_types>(self) && are_parameters(slope);
}

void softplus(const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold, const at::Tensor& out) {
  run_unary(UnaryMode::SOFTPLUS, out, self, beta.toDouble(), threshold.toDouble());
}

bool softplus_served(const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold) {
  return serves<float_types>(self) && are_parameters(beta, threshold);
}

void glu(at::TensorIteratorBase& iter, const at::Tensor& self, int64_t dim, const at::Tensor& out) {
  write_as(iter.common_dtype(), out, [&](const at::Tensor& target) {
    dnn::Glu op;
    check(op.SetAxis(static_cast<int>(at::maybe_wrap_dim(dim, self.dim()))), "Glu::SetAxis", {&self});
    const OnDevice on(target);
    dnn::Tensor result = describe(target);
    check(op.Run(on.handle(), result, operand(self)), "Glu::Run", {&target, &self});
  });
}

// A single element along the dimension cannot be halved; torch raises the error.
bool glu_served(const at::Tensor& self, int64_t /*dim*/) { return serves<float_types>(self) && self.dim() > 0; }

at::Tensor prelu(const at::Tensor& self, const at::Tensor& weight) {
  at::Tensor out = empty_as(self, self.scalar_type());
  run_binary(BinaryMode::PRELU, out, self, weight);
  return out;
}

bool prelu_served(const at::Tensor& self, const at::Tensor& weight) {
  return serves<float_types>(self, weight) && self.scalar_type() == weight.scalar_type() &&
      at::is_expandable_to(weight.sizes(), self.sizes());
}

template <BinaryMode mode>
void backward(Common common, const at::Tensor& grad, const at::Tensor& saved, const at::Tensor& grad_input) {
  const at::ScalarType dtype = common.dtype;
  write_as(dtype, grad_input, [&](const at::Tensor& result) {
    run_binary(mode, result, shaped(in_dtype(grad, dtype), result), shaped(in_dtype(saved, dtype), result));
  });
}

template <BinaryMode mode>
void backward(
    Common common, const at::Tensor& grad, const at::Tensor& saved, const at::Scalar& alpha,
    const at::Tensor& grad_input) {
  const at::ScalarType dtype = common.dtype;
  write_as(dtype, grad_input, [&](const at::Tensor& result) {
    run_binary(
        mode, result, shaped(in_dtype(grad, dtype), result), shaped(in_dtype(saved, dtype), result), alpha.toDouble());
  });
}

void sigmoid_backward(Common common, const at::Tensor& grad, const at::Tensor& output, const at::Tensor& grad_input) {
  backward<BinaryMode::SIGMOID_BW>(common, grad, output, grad_input);
}

void tanh_backward(Common common, const at::Tensor& grad, const at::Tensor& output, const at::Tensor& grad_input) {
  backward<BinaryMode::TANH_BW>(common, grad, output, grad_input);
}

void silu_backward(Common common, const at::Tensor& grad, const at::Tensor& self, const at::Tensor& grad_input) {
  backward<BinaryMode::SILU_BW>(common, grad, self, grad_input);
}

void gelu_backward(
    Common common, const at::Tensor& grad, const at::Tensor& self, c10::string_view approximate,
    const at::Tensor& grad_input) {
  if (approximate == "tanh") {
    backward<BinaryMode::GELU_TANH_BW>(common, grad, self, grad_input);
  } else {
    backward<BinaryMode::GELU_NONE_BW>(common, grad, self, grad_input);
  }
}

bool gelu_backward_served(const at::Tensor& grad, const at::Tensor& self, c10::string_view approximate) {
  return serves<float_types>(grad, self) && is_known(approximate);
}

void threshold_backward(
    Common common, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& threshold,
    const at::Tensor& grad_input) {
  backward<BinaryMode::THRESHOLD_BW>(common, grad, self, threshold, grad_input);
}

bool one_scalar_served(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& scalar) {
  return serves<float_types>(grad, self) && are_parameters(scalar);
}

// self_is_result does not matter: the output has the sign of the input, because the slope is not negative if it is
// true.
void leaky_relu_backward(
    Common common, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& slope, bool /*self_is_result*/,
    const at::Tensor& grad_input) {
  backward<BinaryMode::LEAKY_RELU_BW>(common, grad, self, slope, grad_input);
}

bool leaky_relu_backward_served(
    const at::Tensor& grad, const at::Tensor& self, const at::Scalar& slope, bool /*self_is_result*/) {
  return one_scalar_served(grad, self, slope);
}

// ---- Operators with several calls. The masks are chosen such that NaN inputs give the same results as in torch.

// Calls write(result, grad, input) with tensors of the result's shape, in a dtype wide enough for intermediate results.
template <class Write>
void in_steps(
    at::ScalarType dtype, const at::Tensor& grad_input, const at::Tensor& grad, const at::Tensor& input,
    Write&& write) {
  const at::ScalarType wide = at::toOpMathType(dtype);
  write_as(wide, grad_input, [&](const at::Tensor& result) {
    write(result, shaped(in_dtype(grad, wide), result), shaped(in_dtype(input, wide), result));
  });
}

// Computes grad where low < input < high, and 0 elsewhere. grad_input may be the same tensor as grad or input.
void pass_between(
    const at::Tensor& grad_input, const at::Tensor& grad, const at::Tensor& input, double low, double high) {
  const at::Tensor above = mask_of(UnaryMode::GE, input, high);
  run_binary(BinaryMode::THRESHOLD_BW, grad_input, grad, input, low);
  run_masked_fill(grad_input, above, 0);
}

// Whether float16 and bfloat16 represent the number exactly; torch compares in float32.
bool is_exact(double number) {
  const auto single = static_cast<float>(number);
  return static_cast<float>(c10::Half(single)) == number && static_cast<float>(c10::BFloat16(single)) == number;
}

void run_hardtanh_backward(
    const at::Tensor& grad_input, const at::Tensor& grad, const at::Tensor& self, double low, double high) {
  if (low == 0 && high == 6) {
    run_binary(BinaryMode::RELU6_BW, grad_input, grad, self);
  } else if (is_exact(low) && is_exact(high)) {
    pass_between(grad_input, grad, self, low, high);
  } else {
    in_steps(self.scalar_type(), grad_input, grad, self, [&](const auto& result, const auto& grad, const auto& self) {
      pass_between(result, grad, self, low, high);
    });
  }
}

at::Tensor hardtanh_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  at::Tensor grad_input = empty_as(self, self.scalar_type());
  run_hardtanh_backward(grad_input, grad, self, min.toDouble(), max.toDouble());
  return grad_input;
}

at::Tensor& hardtanh_backward_out(
    const at::Tensor& grad, const at::Tensor& self, const at::Scalar& min, const at::Scalar& max,
    at::Tensor& grad_input) {
  at::TensorIterator::borrowing_binary_op(grad_input, grad, self); // resizes grad_input and checks it
  run_hardtanh_backward(grad_input, grad, self, min.toDouble(), max.toDouble());
  return grad_input;
}

bool hardtanh_backward_served(
    const at::Tensor& grad, const at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  return serves<float_types>(grad, self) && same_kind(grad, self) && are_parameters(min, max);
}

bool hardtanh_backward_out_served(
    const at::Tensor& grad, const at::Tensor& self, const at::Scalar& min, const at::Scalar& max,
    at::Tensor& grad_input) {
  return hardtanh_backward_served(grad, self, min, max) && writable(grad_input) &&
      grad_input.scalar_type() == self.scalar_type();
}

void hardsigmoid_backward(Common common, const at::Tensor& grad, const at::Tensor& self, const at::Tensor& grad_input) {
  in_steps(common.dtype, grad_input, grad, self, [](const auto& result, const auto& grad, const auto& self) {
    pass_between(result, made(UnaryMode::MUL, grad, 1.0 / 6.0), self, -3, 3);
  });
}

// Computes 0 up to -3, grad * (self / 3 + 0.5) up to 3, and grad above.
at::Tensor hardswish_backward(const at::Tensor& grad, const at::Tensor& self) {
  at::Tensor grad_input = empty_as(self, self.scalar_type());
  in_steps(self.scalar_type(), grad_input, grad, self, [](const auto& result, const auto& grad, const auto& self) {
    const at::Tensor slope = made(UnaryMode::MUL, self, 1.0 / 3.0);
    run_unary(UnaryMode::ADD, slope, slope, 0.5);
    run_binary(BinaryMode::MUL, slope, slope, grad);
    run_ternary(TernaryMode::SELECT, result, mask_of(UnaryMode::LT, self, 3), slope, grad);
    run_masked_fill(result, mask_of(UnaryMode::LE, self, -3), 0);
  });
  return grad_input;
}

bool same_kind_served(const at::Tensor& grad, const at::Tensor& self) {
  return serves<float_types>(grad, self) && same_kind(grad, self);
}

void softplus_backward(
    Common common, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold,
    const at::Tensor& grad_input) {
  in_steps(common.dtype, grad_input, grad, self, [&](const auto& result, const auto& grad, const auto& self) {
    const at::Tensor scaled = made(UnaryMode::MUL, self, beta.toDouble());
    const at::Tensor slope = made(UnaryMode::SIGMOID, scaled);
    run_binary(BinaryMode::MUL, slope, slope, grad);
    run_ternary(TernaryMode::SELECT, result, mask_of(UnaryMode::GT, scaled, threshold.toDouble()), grad, slope);
  });
}

bool softplus_backward_served(
    const at::Tensor& grad, const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold) {
  return serves<float_types>(grad, self) && are_parameters(beta, threshold);
}

// With a = alpha * scale and i = input_scale: grad * scale for positive inputs; otherwise grad * i * (output + a),
// which is grad * i * a * exp(i * input).
void elu_backward(
    Common common, const at::Tensor& grad, const at::Scalar& alpha, const at::Scalar& scale,
    const at::Scalar& input_scale, bool is_result, const at::Tensor& saved, const at::Tensor& grad_input) {
  const double factor = alpha.toDouble() * scale.toDouble();
  const double inner = input_scale.toDouble();
  in_steps(common.dtype, grad_input, grad, saved, [&](const auto& result, const auto& grad, const auto& saved) {
    at::Tensor slope;
    if (is_result) {
      slope = made(UnaryMode::ADD, saved, factor);
      run_unary(UnaryMode::MUL, slope, slope, inner);
    } else {
      slope = made(UnaryMode::MUL, saved, inner);
      run_unary(UnaryMode::EXP, slope, slope);
      run_unary(UnaryMode::MUL, slope, slope, inner * factor);
    }
    run_binary(BinaryMode::MUL, slope, slope, grad);
    const at::Tensor negative = mask_of(UnaryMode::LE, saved, 0);
    run_ternary(
        TernaryMode::SELECT, result, negative, slope,
        scale.toDouble() == 1 ? *grad : made(UnaryMode::MUL, grad, scale.toDouble()));
  });
}

bool elu_backward_served(
    const at::Tensor& grad, const at::Scalar& alpha, const at::Scalar& scale, const at::Scalar& input_scale,
    bool /*is_result*/, const at::Tensor& saved) {
  return serves<float_types>(grad, saved) && are_parameters(alpha, scale, input_scale);
}

// Writes 0 where self is in [-lambda, lambda], and the values of `kept` elsewhere.
void keep_outside(const at::Tensor& out, const at::Tensor& kept, const at::Tensor& self, const at::Scalar& lambda) {
  const at::Tensor inside = mask_of(UnaryMode::LE, made(UnaryMode::ABS, self), lambda.toDouble());
  if (!out.is_same(kept)) {
    convert(out, kept);
  }
  run_masked_fill(out, inside, 0);
}

void hardshrink(const at::Tensor& self, const at::Scalar& lambda, const at::Tensor& out) {
  keep_outside(out, self, self, lambda);
}

void softshrink(const at::Tensor& self, const at::Scalar& lambda, const at::Tensor& out) {
  const at::ScalarType wide = at::toOpMathType(self.scalar_type());
  const Operand in = in_dtype(self, wide);
  const at::Tensor clipped = empty_as(in, wide);
  run_unary(UnaryMode::CLIP, clipped, in, -lambda.toDouble(), lambda.toDouble());
  write_as(wide, out, [&](const at::Tensor& result) { run_binary(BinaryMode::SUB, result, in, clipped); });
}

bool shrink_served(const at::Tensor& self, const at::Scalar& lambda) {
  return serves<float_types>(self) && are_parameters(lambda);
}

// Gradient of both hardshrink and softshrink.
void shrink_backward(
    Common common, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& lambda,
    const at::Tensor& grad_input) {
  const at::ScalarType dtype = common.dtype;
  write_as(dtype, grad_input, [&](const at::Tensor& result) {
    keep_outside(result, shaped(in_dtype(grad, dtype), result), shaped(in_dtype(self, dtype), result), lambda);
  });
}

std::tuple<at::Tensor, at::Tensor> prelu_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& weight) {
  const at::Tensor positive = mask_of(UnaryMode::GT, self, 0);
  at::Tensor grad_self = empty_as(self, self.scalar_type());
  run_ternary(TernaryMode::SELECT, grad_self, positive, grad, product(grad, shaped(weight, self)));
  at::Tensor grad_weight = product(self, grad); // has self's shape; autograd reduces it to the weight's shape
  run_masked_fill(grad_weight, positive, 0);
  return {grad_self, grad_weight};
}

bool prelu_backward_served(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& weight) {
  return prelu_served(self, weight) && same_kind_served(grad, self);
}

// With halves a and b and s = sigmoid(b): grad * s, and grad * a * s * (1 - s). s is rounded to the input's dtype, as
// in torch's CPU kernel.
void run_glu_backward(const at::Tensor& grad_input, const at::Tensor& grad, const at::Tensor& self, int64_t dim) {
  const at::ScalarType wide = at::toOpMathType(self.scalar_type());
  const int64_t half = self.size(dim) / 2;
  const Operand outer = in_dtype(grad, wide);
  const Operand gate = in_dtype(made(UnaryMode::SIGMOID, self.narrow(dim, half, half)), wide);
  const at::Tensor grad_gate = product(outer, in_dtype(self.narrow(dim, 0, half), wide));
  write_as(wide, grad_input, [&](const at::Tensor& result) {
    run_binary(BinaryMode::MUL, result.narrow(dim, 0, half), outer, gate);
    run_binary(BinaryMode::SIGMOID_BW, result.narrow(dim, half, half), grad_gate, gate);
  });
}

at::Tensor glu_backward(const at::Tensor& grad, const at::Tensor& self, int64_t dim) {
  at::Tensor grad_input = empty_as(self, self.scalar_type());
  run_glu_backward(grad_input, grad, self, at::maybe_wrap_dim(dim, self.dim()));
  return grad_input;
}

at::Tensor& glu_backward_out(const at::Tensor& grad, const at::Tensor& self, int64_t dim, at::Tensor& grad_input) {
  at::native::resize_output(grad_input, self.sizes());
  run_glu_backward(grad_input, grad, self, at::maybe_wrap_dim(dim, self.dim()));
  return grad_input;
}

bool glu_backward_served(const at::Tensor& grad, const at::Tensor& self, int64_t dim) {
  const int64_t rank = self.dim();
  if (!serves<float_types>(grad, self) || grad.scalar_type() != self.scalar_type() || grad.dim() != rank ||
      dim < -rank || dim >= rank) {
    return false;
  }
  dim = dim < 0 ? dim + rank : dim;
  for (int64_t i = 0; i < rank; ++i) {
    if (self.size(i) != grad.size(i) * (i == dim ? 2 : 1)) {
      return false;
    }
  }
  return true;
}

// grad_input must not share memory with the operands, which are read after it is written.
bool glu_backward_out_served(const at::Tensor& grad, const at::Tensor& self, int64_t dim, at::Tensor& grad_input) {
  return glu_backward_served(grad, self, dim) && writable(grad_input) &&
      grad_input.scalar_type() == self.scalar_type() && grad_input.device() == self.device() &&
      !grad_input.is_alias_of(grad) && !grad_input.is_alias_of(self);
}

// Computes min(x, 0) - log1p(b) with b = exp(-|x|). b is returned as well, because torch's CPU gradient reads it.
void run_log_sigmoid(const at::Tensor& out, const at::Tensor& buffer, const at::Tensor& self) {
  const at::ScalarType wide = at::toOpMathType(self.scalar_type());
  const Operand in = in_dtype(self, wide);
  const at::Tensor small = made(UnaryMode::ABS, in);
  run_unary(UnaryMode::MUL, small, small, -1.0);
  run_unary(UnaryMode::EXP, small, small);
  const at::Tensor low = made(UnaryMode::MIN, in, 0);
  convert(buffer, small);
  run_unary(UnaryMode::LOG1P, small, small);
  write_as(wide, out, [&](const at::Tensor& result) { run_binary(BinaryMode::SUB, result, low, small); });
}

std::tuple<at::Tensor, at::Tensor> log_sigmoid_forward(const at::Tensor& self) {
  std::tuple<at::Tensor, at::Tensor> outputs(empty_as(self, self.scalar_type()), empty_as(self, self.scalar_type()));
  run_log_sigmoid(std::get<0>(outputs), std::get<1>(outputs), self);
  return outputs;
}

// Computes grad * sigmoid(-self), which does not need the buffer.
at::Tensor log_sigmoid_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& /*buffer*/) {
  at::Tensor grad_input = empty_as(self, self.scalar_type());
  in_steps(self.scalar_type(), grad_input, grad, self, [](const auto& result, const auto& grad, const auto& self) {
    const at::Tensor slope = made(UnaryMode::MUL, self, -1.0);
    run_unary(UnaryMode::SIGMOID, slope, slope);
    run_binary(BinaryMode::MUL, result, grad, slope);
  });
  return grad_input;
}

bool log_sigmoid_backward_served(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& /*buffer*/) {
  return same_kind_served(grad, self);
}

} // namespace

void declare_activation(OpPack& pack) {
  namespace meta = at::meta;
  using Mode = UnaryMode;

  pack.impl("aten::relu", TORCH_FN(plain<Mode::RELU>), TORCH_FN(self_served<number_types>));
  pack.impl("aten::relu_", TORCH_FN(plain_in_place<Mode::RELU>), TORCH_FN(in_place_served<number_types>));
  pack.impl("aten::hardswish", TORCH_FN(plain<Mode::HARDSWISH>), TORCH_FN(self_served<float_types>));
  pack.impl("aten::hardswish.out", TORCH_FN(plain_out<Mode::HARDSWISH>), TORCH_FN(out_served<float_types>));
  pack.impl("aten::hardswish_", TORCH_FN(plain_in_place<Mode::HARDSWISH>), TORCH_FN(in_place_served<float_types>));

  structured<meta::structured_hardsigmoid, activation<Mode::HARDSIGMOID>, takes<float_types>>(
      pack, {"aten::hardsigmoid", "aten::hardsigmoid.out", "aten::hardsigmoid_"});
  structured<meta::structured_mish, activation<Mode::MISH>, takes<float_types>>(
      pack, {"aten::mish", "aten::mish.out", "aten::mish_"});
  structured<meta::structured_silu, activation<Mode::SILU>, takes<float_types>>(
      pack, {"aten::silu", "aten::silu.out", "aten::silu_"});
  structured<meta::structured_elu, elu, elu_served>(pack, {"aten::elu", "aten::elu.out", "aten::elu_"});
  structured<meta::structured_gelu, gelu, gelu_served>(pack, {"aten::gelu", "aten::gelu.out", "aten::gelu_"});
  structured<meta::structured_leaky_relu, leaky_relu, leaky_relu_served>(
      pack, {"aten::leaky_relu", "aten::leaky_relu.out", "aten::leaky_relu_"});
  structured<meta::structured_softplus, softplus, softplus_served>(pack, {"aten::softplus", "aten::softplus.out"});
  structured<meta::structured_glu, glu, glu_served>(pack, {"aten::glu", "aten::glu.out"});
  structured<meta::structured_hardshrink, hardshrink, shrink_served>(
      pack, {"aten::hardshrink", "aten::hardshrink.out"});
  structured<meta::structured_softshrink, softshrink, shrink_served>(
      pack, {"aten::softshrink", "aten::softshrink.out"});
  pack.impl("aten::_prelu_kernel", TORCH_FN(prelu), TORCH_FN(prelu_served));
  pack.impl("aten::log_sigmoid_forward", TORCH_FN(log_sigmoid_forward), TORCH_FN(self_served<float_types>));

  structured<meta::structured_sigmoid_backward, sigmoid_backward, takes<float_types>>(
      pack, {"aten::sigmoid_backward", "aten::sigmoid_backward.grad_input"});
  structured<meta::structured_tanh_backward, tanh_backward, takes<float_types>>(
      pack, {"aten::tanh_backward", "aten::tanh_backward.grad_input"});
  structured<meta::structured_silu_backward, silu_backward, takes<float_types>>(
      pack, {"aten::silu_backward", "aten::silu_backward.grad_input"});
  structured<meta::structured_gelu_backward, gelu_backward, gelu_backward_served>(
      pack, {"aten::gelu_backward", "aten::gelu_backward.grad_input"});
  structured<meta::structured_threshold_backward, threshold_backward, one_scalar_served>(
      pack, {"aten::threshold_backward", "aten::threshold_backward.grad_input"});
  structured<meta::structured_leaky_relu_backward, leaky_relu_backward, leaky_relu_backward_served>(
      pack, {"aten::leaky_relu_backward", "aten::leaky_relu_backward.grad_input"});
  structured<meta::structured_hardsigmoid_backward, hardsigmoid_backward, takes<float_types>>(
      pack, {"aten::hardsigmoid_backward", "aten::hardsigmoid_backward.grad_input"});
  structured<meta::structured_softplus_backward, softplus_backward, softplus_backward_served>(
      pack, {"aten::softplus_backward", "aten::softplus_backward.grad_input"});
  structured<meta::structured_elu_backward, elu_backward, elu_backward_served>(
      pack, {"aten::elu_backward", "aten::elu_backward.grad_input"});
  structured<meta::structured_hardshrink_backward, shrink_backward, one_scalar_served>(
      pack, {"aten::hardshrink_backward", "aten::hardshrink_backward.grad_input"});
  structured<meta::structured_softshrink_backward, shrink_backward, one_scalar_served>(
      pack, {"aten::softshrink_backward", "aten::softshrink_backward.grad_input"});
  pack.impl("aten::hardswish_backward", TORCH_FN(hardswish_backward), TORCH_FN(same_kind_served));
  pack.impl("aten::hardtanh_backward", TORCH_FN(hardtanh_backward), TORCH_FN(hardtanh_backward_served));
  pack.impl(
      "aten::hardtanh_backward.grad_input", TORCH_FN(hardtanh_backward_out), TORCH_FN(hardtanh_backward_out_served));
  pack.impl("aten::_prelu_kernel_backward", TORCH_FN(prelu_backward), TORCH_FN(prelu_backward_served));
  pack.impl("aten::glu_backward", TORCH_FN(glu_backward), TORCH_FN(glu_backward_served));
  pack.impl("aten::glu_backward.grad_input", TORCH_FN(glu_backward_out), TORCH_FN(glu_backward_out_served));
  pack.impl("aten::log_sigmoid_backward", TORCH_FN(log_sigmoid_backward), TORCH_FN(log_sigmoid_backward_served));
}

} // namespace musa_ops_mudnn
