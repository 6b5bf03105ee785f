// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/small.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "support/alias.h"
#include "support/shapes.h"

namespace musa_emulator::dnn {
namespace {

using musa::dnn::Binary;
using musa::dnn::Unary;

constexpr int64_t kSmall = 4096; // elements; above this size, torch's wider instructions and threads are faster
constexpr int64_t kSmallBytes = 16 << 10; // limit for copies and fills

bool dense_float(const Tensor& tensor) {
  return TensorAccess::type(tensor) == Tensor::Type::FLOAT && TensorAccess::contiguous(tensor);
}

bool both_dense(const Tensor& out, const Tensor& left, const Tensor& right) {
  return same_shape(out, left) && same_shape(out, right) && dense_float(left) && dense_float(right);
}

// Whether all elements are the same FLOAT in memory: one element, or strides of 0.
bool one_float(const Tensor& tensor) {
  for (int i = 0; i < TensorAccess::ndim(tensor); ++i) {
    if (TensorAccess::dims(tensor)[i] != 1 && TensorAccess::strides(tensor)[i] != 0) {
      return false;
    }
  }
  return TensorAccess::type(tensor) == Tensor::Type::FLOAT;
}

// The unary mode with the same result if the right operand is one number.
std::optional<Unary::Mode> with_number(Binary::Mode mode) {
  switch (mode) {
    case Binary::Mode::ADD: return Unary::Mode::ADD;
    case Binary::Mode::SUB: return Unary::Mode::SUB;
    case Binary::Mode::MUL: return Unary::Mode::MUL;
    case Binary::Mode::DIV:
    case Binary::Mode::TRUEDIV: return Unary::Mode::DIV;
    default: return std::nullopt;
  }
}

// A binary operation of which one operand is one number, as a unary operation with the same result.
struct WithNumber {
  Unary::Mode mode;
  const Tensor& number;
  const Tensor& operand;
};

std::optional<WithNumber> with_number(Binary::Mode mode, const Tensor& out, const Tensor& left, const Tensor& right) {
  const std::optional<Unary::Mode> unary_mode = with_number(mode);
  const bool swapped = one_float(left) && (mode == Binary::Mode::ADD || mode == Binary::Mode::MUL);
  const Tensor& number = swapped ? left : right;
  const Tensor& operand = swapped ? right : left;
  if (!unary_mode || !one_float(number) || !same_shape(out, operand) || !dense_float(operand)) {
    return std::nullopt;
  }
  return WithNumber{*unary_mode, number, operand};
}

// Rounds once, including to infinity.
float as_float(const c10::Scalar& number) {
  return number.isIntegral(/*includeBool=*/true) ? static_cast<float>(number.toLong())
                                                 : static_cast<float>(number.toDouble());
}

float* floats(const Tensor& tensor) { return static_cast<float*>(TensorAccess::address(tensor)); }

// Uses the processor's wider registers if available, as torch's functions do. No clone may contract a product and a
// sum: AVX2 without FMA has no fused operation. Processors other than x86-64 have registers of one width.
#if defined(__x86_64__)
#define MUDNN_WIDEST __attribute__((target_clones("avx2", "default")))
#else
#define MUDNN_WIDEST
#endif

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

// Returns false if the mode is not supported.
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

MUDNN_WIDEST bool binary(Binary::Mode mode, float alpha, int64_t count, float* to, const float* l, const float* r) {
  using M = Binary::Mode;
  switch (mode) {
    case M::ADD: return each(count, to, l, r, [](float a, float b) { return a + b; });
    case M::SUB: return each(count, to, l, r, [](float a, float b) { return a - b; });
    case M::MUL: return each(count, to, l, r, [](float a, float b) { return a * b; });
    case M::DIV:
    case M::TRUEDIV: return each(count, to, l, r, [](float a, float b) { return a / b; });
    case M::THRESHOLD_BW: return each(count, to, l, r, [alpha](float grad, float a) { return a <= alpha ? 0 : grad; });
    default: return false;
  }
}

} // namespace

bool is_small(const c10::Scalar& value, const Tensor& out) {
  if (TensorAccess::elements(out) > kSmall || !TensorAccess::contiguous(out)) {
    return false;
  }
  const double number = value.toDouble();
  if (TensorAccess::type(out) == Tensor::Type::FLOAT) {
    // torch's function refuses a finite number out of range.
    return !std::isfinite(number) || std::abs(number) <= std::numeric_limits<float>::max();
  }
  return number == 0 && !std::signbit(number) && TensorAccess::type(out) != Tensor::Type::QINT4;
}

void fill_small(const c10::Scalar& value, const Tensor& out) {
  const auto count = static_cast<size_t>(TensorAccess::elements(out));
  if (TensorAccess::type(out) == Tensor::Type::FLOAT) {
    std::fill_n(floats(out), count, as_float(value));
  } else {
    std::memset(TensorAccess::address(out), 0, count * c10::elementSize(scalar_type(TensorAccess::type(out))));
  }
}

bool repeat_small(const Tensor& matrix, const Tensor& row) {
  const int64_t length = TensorAccess::elements(row);
  const int64_t elements = TensorAccess::elements(matrix);
  if (elements > kSmall || TensorAccess::ndim(matrix) != 2 || TensorAccess::dims(matrix)[1] != length ||
      !dense_float(matrix) || !dense_float(row)) {
    return false;
  }
  for (float* to = floats(matrix); to != floats(matrix) + elements; to += length) {
    std::memcpy(to, floats(row), static_cast<size_t>(length) * sizeof(float));
  }
  return true;
}

bool is_small_extreme(const Tensor& positions, const Tensor& in, int64_t dim) {
  return dim == TensorAccess::ndim(in) - 1 && dense_float(in) && TensorAccess::elements(in) <= kSmall &&
      TensorAccess::contiguous(positions);
}

void find_small(bool largest, const Tensor& positions, const Tensor& in) {
  const int64_t length = TensorAccess::dims(in)[TensorAccess::ndim(in) - 1];
  const int64_t rows = TensorAccess::elements(in) / length;
  const float* row = floats(in);
  auto* const to = static_cast<int64_t*>(TensorAccess::address(positions));
  for (int64_t i = 0; i < rows; ++i, row += length) {
    int64_t best = 0;
    for (int64_t k = 1; k < length && !std::isnan(row[best]); ++k) {
      // Comparisons with NaN are false, so NaN is selected.
      if (largest ? !(row[k] <= row[best]) : !(row[k] >= row[best])) {
        best = k;
      }
    }
    to[i] = best;
  }
}

bool is_small_pick(int64_t outer, int64_t picks, int64_t bytes) {
  return outer * picks <= kSmall && outer * picks * bytes <= kSmallBytes;
}

namespace {

template <class Index>
bool pick(char* to, const Index* indices, const char* from, int64_t outer, int64_t picks, int64_t size, int64_t bytes) {
  for (int64_t o = 0; o < outer; ++o, from += size * bytes) {
    for (int64_t k = 0; k < picks; ++k, to += bytes) {
      const auto index = static_cast<int64_t>(indices[k]);
      if (index < 0 || index >= size) {
        return false;
      }
      std::memcpy(to, from + index * bytes, static_cast<size_t>(bytes));
    }
  }
  return true;
}

} // namespace

bool pick_small(
    const Tensor& out, const Tensor& indices, const Tensor& params, int64_t outer, int64_t size, int64_t bytes) {
  auto* const to = static_cast<char*>(TensorAccess::address(out));
  const auto* const from = static_cast<const char*>(TensorAccess::address(params));
  const void* const where = TensorAccess::address(indices);
  const int64_t picks = TensorAccess::elements(indices);
  return TensorAccess::type(indices) == Tensor::Type::INT64
      ? pick(to, static_cast<const int64_t*>(where), from, outer, picks, size, bytes)
      : pick(to, static_cast<const int32_t*>(where), from, outer, picks, size, bytes);
}

bool is_small(Unary::Mode mode, const Tensor& out, const Tensor& in) {
  return TensorAccess::elements(out) <= kSmall && dense_float(out) && (dense_float(in) || one_float(in)) &&
      unary(mode, 0, /*count=*/0, floats(out), floats(in));
}

bool is_small(Binary::Mode mode, const Tensor& out, const Tensor& left, const Tensor& right) {
  if (TensorAccess::elements(out) > kSmall || !dense_float(out)) {
    return false;
  }
  return both_dense(out, left, right) ? binary(mode, 0, /*count=*/0, floats(out), floats(left), floats(right))
                                      : with_number(mode, out, left, right).has_value();
}

void run_small(Unary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& in) {
  const int64_t count = TensorAccess::elements(out);
  if (dense_float(in)) {
    unary(mode, as_float(alpha), count, floats(out), floats(in));
  } else {
    float result = 0;
    unary(mode, as_float(alpha), 1, &result, floats(in));
    std::fill_n(floats(out), count, result);
  }
}

void run_small(
    Binary::Mode mode, const c10::Scalar& alpha, const Tensor& out, const Tensor& left, const Tensor& right) {
  const int64_t count = TensorAccess::elements(out);
  if (both_dense(out, left, right)) {
    binary(mode, as_float(alpha), count, floats(out), floats(left), floats(right));
  } else {
    const auto [unary_mode, number, operand] = *with_number(mode, out, left, right);
    unary(unary_mode, *floats(number), count, floats(out), floats(operand));
  }
}

} // namespace musa_emulator::dnn
