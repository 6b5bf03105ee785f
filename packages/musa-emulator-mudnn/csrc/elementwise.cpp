// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Unary, Binary, Ternary, Fill.
#include "cpu_stubs.h"

#include <ATen/ScalarOps.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Activation.h>
#include <ATen/ops/abs_cpu_dispatch.h>
#include <ATen/ops/acos_cpu_dispatch.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/addcdiv_cpu_dispatch.h>
#include <ATen/ops/addcmul_cpu_dispatch.h>
#include <ATen/ops/any_cpu_dispatch.h>
#include <ATen/ops/atan_cpu_dispatch.h>
#include <ATen/ops/ceil_cpu_dispatch.h>
#include <ATen/ops/clamp_cpu_dispatch.h>
#include <ATen/ops/clamp_max_cpu_dispatch.h>
#include <ATen/ops/clamp_min_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/cos_cpu_dispatch.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/elu_cpu_dispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/erf_cpu_dispatch.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/fill_cpu_dispatch.h>
#include <ATen/ops/floor_cpu_dispatch.h>
#include <ATen/ops/fmod_cpu_dispatch.h>
#include <ATen/ops/ge_cpu_dispatch.h>
#include <ATen/ops/gelu_backward_cpu_dispatch.h>
#include <ATen/ops/gelu_cpu_dispatch.h>
#include <ATen/ops/gt_cpu_dispatch.h>
#include <ATen/ops/hardsigmoid_cpu_dispatch.h>
#include <ATen/ops/hardswish_cpu_dispatch.h>
#include <ATen/ops/hardtanh_backward_cpu_dispatch.h>
#include <ATen/ops/isnan_cpu_dispatch.h>
#include <ATen/ops/le_cpu_dispatch.h>
#include <ATen/ops/leaky_relu_backward_cpu_dispatch.h>
#include <ATen/ops/leaky_relu_cpu_dispatch.h>
#include <ATen/ops/log10_cpu_dispatch.h>
#include <ATen/ops/log1p_cpu_dispatch.h>
#include <ATen/ops/log2_cpu_dispatch.h>
#include <ATen/ops/log_cpu_dispatch.h>
#include <ATen/ops/logical_and_cpu_dispatch.h>
#include <ATen/ops/logical_or_cpu_dispatch.h>
#include <ATen/ops/logical_xor_cpu_dispatch.h>
#include <ATen/ops/lt_cpu_dispatch.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/maximum_cpu_dispatch.h>
#include <ATen/ops/minimum_cpu_dispatch.h>
#include <ATen/ops/mish_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/ne_cpu_dispatch.h>
#include <ATen/ops/pow_cpu_dispatch.h>
#include <ATen/ops/reciprocal_cpu_dispatch.h>
#include <ATen/ops/remainder_cpu_dispatch.h>
#include <ATen/ops/round_cpu_dispatch.h>
#include <ATen/ops/rsqrt_cpu_dispatch.h>
#include <ATen/ops/sigmoid_backward_cpu_dispatch.h>
#include <ATen/ops/sigmoid_cpu_dispatch.h>
#include <ATen/ops/sign_cpu_dispatch.h>
#include <ATen/ops/silu_backward_cpu_dispatch.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/sin_cpu_dispatch.h>
#include <ATen/ops/softplus_cpu_dispatch.h>
#include <ATen/ops/sqrt_cpu_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/tan_cpu_dispatch.h>
#include <ATen/ops/tanh_backward_cpu_dispatch.h>
#include <ATen/ops/tanh_cpu_dispatch.h>
#include <ATen/ops/threshold_backward_cpu_dispatch.h>
#include <ATen/ops/where_cpu_dispatch.h>

#include <cmath>
#include <string_view>

#include "support/call.h"
#include "support/alias.h"
#include "support/outputs.h"
#include "support/shapes.h"
#include "support/small.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using at::Scalar;
using Function1 = at::Tensor& (*)(at::Tensor&, const at::Tensor&);

// Returns the number as torch's binary functions require it: it does not promote the type of the other operand.
at::Tensor number(const Scalar& value) {
  at::Tensor tensor = at::native::wrapped_scalar_tensor(value);
  return tensor;
}

// Returns the function of a mode without parameters; nullptr for other modes.
Function1 plain(Unary::Mode mode) {
  using M = Unary::Mode;
  switch (mode) {
    case M::ABS: return ops::abs_out;
    case M::SQRT: return ops::sqrt_out;
    case M::RSQRT: return ops::rsqrt_out;
    case M::RECIPROCAL: return ops::reciprocal_out;
    case M::EXP: return ops::exp_out;
    case M::LOG: return ops::log_out;
    case M::LOG2: return ops::log2_out;
    case M::LOG10: return ops::log10_out;
    case M::LOG1P: return ops::log1p_out;
    case M::SIN: return ops::sin_out;
    case M::COS: return ops::cos_out;
    case M::TAN: return ops::tan_out;
    case M::ACOS: return ops::acos_out;
    case M::ATAN: return ops::atan_out;
    case M::TANH: return ops::tanh_out;
    case M::ERF: return ops::erf_out;
    case M::CEIL: return ops::ceil_out;
    case M::FLOOR: return ops::floor_out;
    case M::ROUND: return ops::round_out;
    case M::SIGN: return ops::sign_out;
    case M::SIGMOID: return ops::sigmoid_out;
    case M::HARDSIGMOID: return ops::hardsigmoid_out;
    case M::HARDSWISH: return ops::hardswish_out;
    case M::MISH: return ops::mish_out;
    case M::SILU: return ops::silu_out;
    default: return nullptr;
  }
}

// Calls divide(out, l, r). The result of an integer division by 0 is undefined, as on a device; torch's CPU functions
// raise an error.
template <class Divide>
void divide_integers(at::Tensor& out, const at::Tensor& l, const at::Tensor& r, Divide&& divide) {
  if (!kOnHost || at::isFloatingType(l.scalar_type()) || at::isFloatingType(r.scalar_type())) {
    divide(out, l, r);
    return;
  }
  const at::Tensor zero = ops::eq(r, Scalar(0));
  if (!*ops::any(zero).const_data_ptr<bool>()) {
    divide(out, l, r);
    return;
  }
  const at::Tensor safe = ops::add(r, zero, 1);
  divide(out, l, safe);
  ops::masked_fill_(out, zero, Scalar(-1));
}

void divide_rounded(at::Tensor& out, const at::Tensor& l, const at::Tensor& r, std::string_view rounding) {
  divide_integers(out, l, r, [rounding](auto& to, auto& x, auto& y) { ops::div_out(to, x, y, rounding); });
}

// For small operands, oneDNN, which torch's function calls, takes longer to set up than torch's own kernel takes to
// run.
void run_gelu(at::Tensor& out, const at::Tensor& in, at::native::GeluType type) {
  constexpr int64_t small = 1024; // elements
  if (kOnHost && in.numel() <= small && out.scalar_type() == in.scalar_type()) {
    at::TensorIterator iter = at::TensorIterator::unary_op(out, in);
    at::native::GeluKernel(at::kCPU, iter, type);
  } else {
    ops::gelu_out(out, in, at::native::gelutype_to_string(type));
  }
}

// Modes with a parameter, or composed of several functions.
void run_unary(Unary::Mode mode, const Scalar& alpha, const Scalar& beta, at::Tensor& out, const at::Tensor& in) {
  using M = Unary::Mode;
  switch (mode) {
    case M::IDENTITY:
    case M::CAST: at::native::copy_(out, in); return;
    case M::SQUARE: ops::mul_out(out, in, in); return;
    case M::RELU: ops::clamp_min_out(out, in, 0); return;
    case M::RELU6: ops::clamp_out(out, in, Scalar(0), Scalar(6)); return;
    case M::SWISH: { // x * sigmoid(alpha * x)
      const at::Tensor gate = ops::sigmoid(ops::mul(in, number(alpha)));
      ops::mul_out(out, in, gate);
      return;
    }
    case M::GELU: run_gelu(out, in, at::native::GeluType::None); return;
    case M::GELU_TANH: run_gelu(out, in, at::native::GeluType::Tanh); return;
    case M::LEAKY_RELU: ops::leaky_relu_out(out, in, alpha); return;
    case M::ELU: ops::elu_out(out, in, alpha, 1, 1); return;
    case M::SOFTPLUS: ops::softplus_out(out, in, alpha, beta); return;
    case M::CLIP: ops::clamp_out(out, in, alpha, beta); return;
    case M::POW: ops::pow_out(out, in, alpha); return;
    case M::ADD: ops::add_out(out, in, number(alpha), 1); return;
    case M::SUB: ops::sub_out(out, in, number(alpha), 1); return;
    case M::MUL: ops::mul_out(out, in, number(alpha)); return;
    case M::DIV:
    case M::TRUEDIV: ops::div_out(out, in, number(alpha)); return;
    case M::FLOORDIV: ops::div_out(out, in, number(alpha), "floor"); return;
    case M::TRUNCATEDIV: ops::div_out(out, in, number(alpha), "trunc"); return;
    case M::FLOORMOD: ops::remainder_out(out, in, number(alpha)); return;
    case M::TRUNCATEMOD: ops::fmod_out(out, in, number(alpha)); return;
    case M::MAX: ops::clamp_min_out(out, in, alpha); return;
    case M::MIN: ops::clamp_max_out(out, in, alpha); return;
    case M::SUB_BY_ALPHA: ops::sub_out(out, number(alpha), in, 1); return;
    case M::DIV_BY_ALPHA:
    case M::TRUEDIV_BY_ALPHA: ops::div_out(out, number(alpha), in); return;
    case M::FLOORDIV_BY_ALPHA: divide_rounded(out, number(alpha), in, "floor"); return;
    case M::TRUNCATEDIV_BY_ALPHA: divide_rounded(out, number(alpha), in, "trunc"); return;
    case M::EQ: ops::eq_out(out, in, alpha); return;
    case M::NE: ops::ne_out(out, in, alpha); return;
    case M::LT: ops::lt_out(out, in, alpha); return;
    case M::LE: ops::le_out(out, in, alpha); return;
    case M::GT: ops::gt_out(out, in, alpha); return;
    case M::GE: ops::ge_out(out, in, alpha); return;
    case M::LOGICAL_AND: ops::logical_and_out(out, in, number(alpha)); return;
    case M::LOGICAL_OR: ops::logical_or_out(out, in, number(alpha)); return;
    case M::LOGICAL_XOR: ops::logical_xor_out(out, in, number(alpha)); return;
    case M::IS_NAN: at::native::copy_(out, ops::isnan(in)); return;
    case M::IS_INF: {
      at::Tensor magnitude = at::empty_like(in);
      ops::eq_out(out, ops::abs_out(magnitude, in), Scalar(INFINITY));
      return;
    }
    case M::IS_FINITE: {
      at::Tensor magnitude = at::empty_like(in);
      ops::lt_out(out, ops::abs_out(magnitude, in), Scalar(INFINITY));
      return;
    }
    case M::IS_NONZERO: ops::ne_out(out, in, Scalar(0)); return;
    default: plain(mode)(out, in); return;
  }
}

void run_binary(Binary::Mode mode, const Scalar& alpha, at::Tensor& out, const at::Tensor& l, const at::Tensor& r) {
  using M = Binary::Mode;
  switch (mode) {
    case M::ADD: ops::add_out(out, l, r, 1); return;
    case M::SUB: ops::sub_out(out, l, r, 1); return;
    case M::ADD_ALPHA: ops::add_out(out, l, r, alpha); return;
    case M::SUB_ALPHA: ops::sub_out(out, l, r, alpha); return;
    case M::MUL: ops::mul_out(out, l, r); return;
    case M::DIV:
    case M::TRUEDIV: ops::div_out(out, l, r); return;
    case M::FLOORDIV: divide_rounded(out, l, r, "floor"); return;
    case M::TRUNCATEDIV: divide_rounded(out, l, r, "trunc"); return;
    case M::FLOORMOD:
      divide_integers(out, l, r, [](auto& to, auto& x, auto& y) { ops::remainder_out(to, x, y); });
      return;
    case M::TRUNCATEMOD:
      divide_integers(out, l, r, [](auto& to, auto& x, auto& y) { ops::fmod_out(to, x, y); });
      return;
    case M::DIVNONAN: { // 0 where the divisor is 0
      ops::div_out(out, l, r);
      ops::masked_fill_(out, ops::eq(r, Scalar(0)), Scalar(0));
      return;
    }
    case M::POW: ops::pow_out(out, l, r); return;
    case M::MAX: ops::maximum_out(out, l, r); return;
    case M::MIN: ops::minimum_out(out, l, r); return;
    case M::SQUARED_DIFF: {
      const at::Tensor difference = ops::sub(l, r, 1);
      ops::mul_out(out, difference, difference);
      return;
    }
    case M::EQ: ops::eq_out(out, l, r); return;
    case M::NE: ops::ne_out(out, l, r); return;
    case M::LT: ops::lt_out(out, l, r); return;
    case M::LE: ops::le_out(out, l, r); return;
    case M::GT: ops::gt_out(out, l, r); return;
    case M::GE: ops::ge_out(out, l, r); return;
    case M::LOGICAL_AND: ops::logical_and_out(out, l, r); return;
    case M::LOGICAL_OR: ops::logical_or_out(out, l, r); return;
    case M::LOGICAL_XOR: ops::logical_xor_out(out, l, r); return;
    case M::PRELU: ops::where_out(out, ops::gt(l, Scalar(0)), l, ops::mul(l, r)); return;
    case M::THRESHOLD_BW: ops::threshold_backward_out(out, l, r, alpha); return;
    case M::LEAKY_RELU_BW: ops::leaky_relu_backward_out(out, l, r, alpha, /*self_is_result=*/false); return;
    case M::RELU6_BW: ops::hardtanh_backward_out(out, l, r, Scalar(0), Scalar(6)); return;
    case M::SIGMOID_BW: ops::sigmoid_backward_out(out, l, r); return;
    case M::TANH_BW: ops::tanh_backward_out(out, l, r); return;
    case M::SILU_BW: ops::silu_backward_out(out, l, r); return;
    case M::GELU_NONE_BW: ops::gelu_backward_out(out, l, r, "none"); return;
    case M::GELU_TANH_BW: ops::gelu_backward_out(out, l, r, "tanh"); return;
    case M::RSQRT_BW: { // l is the output y, r its gradient: -dy * y^3 / 2
      const at::Tensor cube = ops::mul(ops::mul(l, l), l);
      ops::mul_out(out, ops::mul(cube, r), number(-0.5));
      return;
    }
  }
}

bool answers_bool(Binary::Mode mode) { return mode >= Binary::Mode::EQ && mode <= Binary::Mode::LOGICAL_XOR; }

void run_ternary(
    Ternary::Mode mode, const Scalar& alpha, at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
    const at::Tensor& c) {
  using M = Ternary::Mode;
  switch (mode) {
    case M::SELECT:
    case M::SELECTV2: ops::where_out(out, a, b, c); return;
    case M::CLAMP: ops::clamp_out(out, a, b, c); return;
    case M::ADDCMUL: ops::addcmul_out(out, a, b, c, 1); return;
    case M::ADDCDIV: ops::addcdiv_out(out, a, b, c, 1); return;
    case M::ADDCMUL_ALPHA: ops::addcmul_out(out, a, b, c, alpha); return;
    case M::ADDCDIV_ALPHA: ops::addcdiv_out(out, a, b, c, alpha); return;
  }
}

bool answers_bool(Unary::Mode mode) { return mode >= Unary::Mode::EQ; }

} // namespace

Status Unary::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Unary::SetAlpha(double alpha) {
  alpha_ = alpha;
  integer_ = false;
  return Status::SUCCESS;
}

Status Unary::SetAlpha(int64_t alpha) {
  alpha_integer_ = alpha;
  integer_ = true;
  return Status::SUCCESS;
}

Status Unary::SetBeta(double beta) {
  beta_ = beta;
  return Status::SUCCESS;
}

Status Unary::SetBeta(int64_t beta) {
  beta_integer_ = beta;
  return Status::SUCCESS;
}

Status Unary::Run(Handle& handle, Tensor& out, const Tensor& in) const {
  return call<"musa::dnn::Unary::Run">(handle, {&out, &in}, [&](Call& call) {
    if (!call.require(same_shape(out, in), Status::INVALID_PARAMETER, "out and in differ in shape") ||
        !call.require(
            !answers_bool(mode_) || has_type(out, {Tensor::Type::BOOL}), Status::INVALID_PARAMETER,
            "out is not BOOL, which the mode requires")) {
      return call.status();
    }
    const Scalar alpha = integer_ ? Scalar(alpha_integer_) : Scalar(alpha_);
    const Scalar beta = integer_ ? Scalar(beta_integer_) : Scalar(beta_);
    if (is_small(mode_, out, in)) {
      return call.enqueue_brief([mode = mode_, alpha, out = out, in = in] { run_small(mode, alpha, out, in); });
    }
    return call.enqueue([mode = mode_, alpha, beta, out = out, in = in] {
      at::Tensor& result = lent_alias(out);
      const Outputs given(result);
      run_unary(mode, alpha, beta, result, lent_alias(in));
      given.keep();
    });
  });
}

Status Binary::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Binary::SetAlpha(double alpha) {
  alpha_ = alpha;
  integer_ = false;
  return Status::SUCCESS;
}

Status Binary::SetAlpha(int64_t alpha) {
  alpha_integer_ = alpha;
  integer_ = true;
  return Status::SUCCESS;
}

Status Binary::SetBeta(double beta) {
  beta_ = beta;
  return Status::SUCCESS;
}

Status Binary::SetBeta(int64_t beta) {
  beta_integer_ = beta;
  return Status::SUCCESS;
}

Status Binary::Run(Handle& handle, Tensor& out, const Tensor& left, const Tensor& right) const {
  return call<"musa::dnn::Binary::Run">(handle, {&out, &left, &right}, [&](Call& call) {
    if (!call.require(
            broadcast_to(out, {&left, &right}), Status::INVALID_PARAMETER, "the inputs do not broadcast to out") ||
        !call.require(
            !answers_bool(mode_) || has_type(out, {Tensor::Type::BOOL}), Status::INVALID_PARAMETER,
            "out is not BOOL, which the mode requires")) {
      return call.status();
    }
    const Scalar alpha = integer_ ? Scalar(alpha_integer_) : Scalar(alpha_);
    if (is_small(mode_, out, left, right)) {
      return call.enqueue_brief(
          [mode = mode_, alpha, out = out, left = left, right = right] { run_small(mode, alpha, out, left, right); });
    }
    return call.enqueue([mode = mode_, alpha, out = out, left = left, right = right] {
      at::Tensor& result = lent_alias(out);
      const Outputs given(result);
      run_binary(mode, alpha, result, lent_alias(left), lent_alias(right));
      given.keep();
    });
  });
}

Status Ternary::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Ternary::SetAlpha(double alpha) {
  alpha_ = alpha;
  integer_ = false;
  return Status::SUCCESS;
}

Status Ternary::SetAlpha(int64_t alpha) {
  alpha_integer_ = alpha;
  integer_ = true;
  return Status::SUCCESS;
}

Status Ternary::Run(Handle& handle, Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c) const {
  return call<"musa::dnn::Ternary::Run">(handle, {&out, &a, &b, &c}, [&](Call& call) {
    if (!call.require(
            broadcast_to(out, {&a, &b, &c}), Status::INVALID_PARAMETER, "the inputs do not broadcast to out") ||
        !call.require(
            (mode_ != Mode::SELECT && mode_ != Mode::SELECTV2) || has_type(a, {Tensor::Type::BOOL}),
            Status::INVALID_PARAMETER, "the condition is not BOOL")) {
      return call.status();
    }
    const Scalar alpha = integer_ ? Scalar(alpha_integer_) : Scalar(alpha_);
    return call.enqueue([mode = mode_, alpha, out = out, a = a, b = b, c = c] {
      at::Tensor& result = lent_alias(out);
      const Outputs given(result);
      run_ternary(mode, alpha, result, lent_alias(a), lent_alias(b), lent_alias(c));
      given.keep();
    });
  });
}

Status Fill::SetValue(double value) {
  value_ = value;
  integer_ = false;
  return Status::SUCCESS;
}

Status Fill::SetValue(int64_t value) {
  integer_value_ = value;
  integer_ = true;
  return Status::SUCCESS;
}

Status Fill::Run(Handle& handle, Tensor& out) const {
  return call<"musa::dnn::Fill::Run">(handle, {&out}, [&](Call& call) {
    const Scalar value = integer_ ? Scalar(integer_value_) : Scalar(value_);
    if (is_small(value, out)) {
      return call.enqueue_brief([value, out = out] { fill_small(value, out); });
    }
    return call.enqueue([value, out = out] {
      at::Tensor result = alias(out);
      ops::fill_(result, value);
    });
  });
}

Status Fill::Run(Handle& handle, Tensor& out, const Tensor& mask) const {
  return call<"musa::dnn::Fill::Run">(handle, {&out, &mask}, [&](Call& call) {
    if (!call.require(
            has_type(mask, {Tensor::Type::BOOL}) && broadcast_to(out, {&out, &mask}), Status::INVALID_PARAMETER,
            "the mask is not a BOOL tensor that broadcasts to out")) {
      return call.status();
    }
    const Scalar value = integer_ ? Scalar(integer_value_) : Scalar(value_);
    return call.enqueue([value, out = out, mask = mask] {
      at::Tensor result = alias(out);
      ops::masked_fill_(result, alias(mask), value);
    });
  });
}

} // namespace musa::dnn
