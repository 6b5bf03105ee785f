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

float* floats(const Tensor& tensor) {
  return static_cast<float*>(TensorAccess::address(tensor));
}

} // namespace

bool run_small(Unary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& in) {
  using M = Unary::Mode;
  const int64_t count = TensorAccess::elements(out);
  if (count > kSmall || !dense_float(out) || !dense_float(in)) {
    return false;
  }
  float* const to = floats(out);
  const float* const x = floats(in);
  const auto each = [&](auto function) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = function(x[i]);
    }
    return true;
  };
  const auto number = [&alpha] { return alpha.to<float>(); };
  switch (mode) {
    case M::IDENTITY: std::memmove(to, x, static_cast<size_t>(count) * sizeof(float)); return true;
    case M::RELU: return each([](float a) { return a < 0 ? 0 : a; });
    case M::SQUARE: return each([](float a) { return a * a; });
    case M::ADD: return each([b = number()](float a) { return a + b; });
    case M::SUB: return each([b = number()](float a) { return a - b; });
    case M::MUL: return each([b = number()](float a) { return a * b; });
    case M::DIV:
    case M::TRUEDIV: return each([b = number()](float a) { return a / b; });
    default: return false;
  }
}

bool run_small(
    Binary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& left, const Tensor& right) {
  using M = Binary::Mode;
  const int64_t count = TensorAccess::elements(out);
  if (count > kSmall || !same_shape(out, left) || !same_shape(out, right) || !dense_float(out) ||
      !dense_float(left) || !dense_float(right)) {
    return false;
  }
  float* const to = floats(out);
  const float* const l = floats(left);
  const float* const r = floats(right);
  const auto each = [&](auto function) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = function(l[i], r[i]);
    }
    return true;
  };
  switch (mode) {
    case M::ADD: return each([](float a, float b) { return a + b; });
    case M::SUB: return each([](float a, float b) { return a - b; });
    case M::MUL: return each([](float a, float b) { return a * b; });
    case M::DIV:
    case M::TRUEDIV: return each([](float a, float b) { return a / b; });
    case M::THRESHOLD_BW:
      return each([least = alpha.to<float>()](float grad, float a) { return a <= least ? 0 : grad; });
    default: return false;
  }
}

} // namespace musa_emulator::dnn
