// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/small.h"

#include <cstring>

#include "support/shapes.h"

namespace musa_emulator::dnn {
namespace {

using musa::dnn::Binary;
using musa::dnn::Unary;

constexpr int64_t kSmall = 4096; // elements: more of them gain by torch's wider instructions and its threads

bool dense_float(const Tensor& tensor) {
  return TensorAccess::type(tensor) == Tensor::Type::FLOAT && TensorAccess::contiguous(tensor);
}

// Rounded once, to infinity too.
float as_float(const c10::Scalar& number) {
  return number.isIntegral(/*includeBool=*/true) ? static_cast<float>(number.toLong())
                                                 : static_cast<float>(number.toDouble());
}

float* floats(const Tensor& tensor) {
  return static_cast<float*>(TensorAccess::address(tensor));
}

// Where the processor has wider registers, they are used, as torch's functions use them. No clone may contract a product
// and a sum: AVX2 alone brings no fused operation.
#define MUDNN_WIDEST __attribute__((target_clones("avx2", "default")))

template <class Function>
[[gnu::always_inline]] inline bool each(int64_t count, float* to, const float* x, Function function) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = function(x[i]);
  }
  return true;
}

template <class Function>
[[gnu::always_inline]] inline bool each(int64_t count, float* to, const float* l, const float* r, Function function) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = function(l[i], r[i]);
  }
  return true;
}

// False for a mode that it does not know.
MUDNN_WIDEST bool unary(Unary::Mode mode, float alpha, int64_t count, float* to, const float* x) {
  using M = Unary::Mode;
  switch (mode) {
    case M::IDENTITY: std::memmove(to, x, static_cast<size_t>(count) * sizeof(float)); return true;
    case M::RELU: return each(count, to, x, [](float a) { return a < 0 ? 0 : a; });
    case M::SQUARE: return each(count, to, x, [](float a) { return a * a; });
    case M::ADD: return each(count, to, x, [alpha](float a) { return a + alpha; });
    case M::SUB: return each(count, to, x, [alpha](float a) { return a - alpha; });
    case M::MUL: return each(count, to, x, [alpha](float a) { return a * alpha; });
    case M::DIV:
    case M::TRUEDIV: return each(count, to, x, [alpha](float a) { return a / alpha; });
    default: return false;
  }
}

MUDNN_WIDEST bool binary(
    Binary::Mode mode, float alpha, int64_t count, float* to, const float* l, const float* r) {
  using M = Binary::Mode;
  switch (mode) {
    case M::ADD: return each(count, to, l, r, [](float a, float b) { return a + b; });
    case M::SUB: return each(count, to, l, r, [](float a, float b) { return a - b; });
    case M::MUL: return each(count, to, l, r, [](float a, float b) { return a * b; });
    case M::DIV:
    case M::TRUEDIV: return each(count, to, l, r, [](float a, float b) { return a / b; });
    case M::THRESHOLD_BW:
      return each(count, to, l, r, [alpha](float grad, float a) { return a <= alpha ? 0 : grad; });
    default: return false;
  }
}

} // namespace

bool is_small(Unary::Mode mode, const Tensor& out, const Tensor& in) {
  return TensorAccess::elements(out) <= kSmall && dense_float(out) && dense_float(in) &&
      unary(mode, 0, /*count=*/0, floats(out), floats(in));
}

bool is_small(Binary::Mode mode, const Tensor& out, const Tensor& left, const Tensor& right) {
  return TensorAccess::elements(out) <= kSmall && same_shape(out, left) && same_shape(out, right) &&
      dense_float(out) && dense_float(left) && dense_float(right) &&
      binary(mode, 0, /*count=*/0, floats(out), floats(left), floats(right));
}

void run_small(Unary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& in) {
  unary(mode, as_float(alpha), TensorAccess::elements(out), floats(out), floats(in));
}

void run_small(
    Binary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& left, const Tensor& right) {
  binary(mode, as_float(alpha), TensorAccess::elements(out), floats(out), floats(left), floats(right));
}

} // namespace musa_emulator::dnn
