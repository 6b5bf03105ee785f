// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Normalization of rows: layer norm (mean and variance) and RMS norm (root mean square).
#include <ATen/core/Tensor.h>
#include <ATen/native/layer_norm.h>
#include <musa_runtime/argument_checks.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/optional.h"
#include "engines/rows.muh"
#include "kernels/LayerNorm.h"

namespace musa_ops_ported {
namespace {

// The input as (count, size). Weight and bias have `size` elements and may be undefined.
struct Rows {
  int64_t count, size;
};

template <typename T, bool centered>
void forward(
    Rows rows, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
    const at::Tensor& output, const at::Tensor& means, const at::Tensor& rstds) {
  using Real = at::opmath_type<T>;
  const T* const in = input.const_data_ptr<T>();
  const Real* const scale = data_or_null<Real>(weight);
  const Real* const shift = data_or_null<Real>(bias);
  T* const out = output.mutable_data_ptr<T>();
  Real* const mean_of = mutable_data_or_null<Real>(means);
  Real* const rstd_of = rstds.mutable_data_ptr<Real>();
  const Real least = static_cast<Real>(eps);
  each_row<Real>(rows.count, rows.size, [=] __device__(int64_t row, int64_t first, int64_t step, auto all) {
    const T* const x = in + row * rows.size;
    const auto normalized = [&](Real value, int64_t k, Real mean, Real rstd) {
      Real y = (value - mean) * rstd;
      y = scale != nullptr ? y * scale[k] : y;
      return static_cast<T>(shift != nullptr ? y + shift[k] : y);
    };
    Real* const means = mean_of;
    T* const made_row = out + row * rows.size;
    const Real added = least;
    const auto keep_statistics = [&](Real mean, Real rstd) {
      if (first == 0) {
        rstd_of[row] = rstd;
        if constexpr (centered) {
          means[row] = mean;
        }
      }
    };
    Real mean = 0;
    if constexpr (std::is_same_v<decltype(all), SharedRow>) {
      if (keeps_row(all, rows.size)) { // reads the row once
        constexpr int kSome = 4; // number of parameters loaded together, before stores
        Real kept[kKept];
        T made[kSome];
        keep_row(kept, x, 1, first, rows.size, step, Real(0));
        if constexpr (centered) {
          Real sum = 0;
#pragma unroll
          for (int i = 0; i < kKept; ++i) {
            sum += kept[i];
          }
          mean = all(sum, Plus()) / static_cast<Real>(rows.size);
        }
        Real squares = 0;
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
          const Real distance = first + i * step < rows.size ? kept[i] - mean : Real(0);
          squares += distance * distance;
        }
        const Real rstd = Real(1) / std::sqrt(all(squares, Plus()) / static_cast<Real>(rows.size) + added);
#pragma unroll
        for (int begin = 0; begin < kKept; begin += kSome) {
#pragma unroll
          for (int i = begin; i < begin + kSome; ++i) {
            const int64_t k = first + i * step;
            made[i - begin] = k < rows.size ? normalized(kept[i], k, mean, rstd) : T();
          }
#pragma unroll
          for (int i = begin; i < begin + kSome; ++i) {
            const int64_t k = first + i * step;
            if (k < rows.size) {
              made_row[k] = made[i - begin];
            }
          }
        }
        keep_statistics(mean, rstd);
        return;
      }
    }
    if constexpr (centered) {
      mean = sum_over<Real>(first, rows.size, step, all, [&](int64_t k) { return static_cast<Real>(x[k]); }) /
          static_cast<Real>(rows.size);
    }
    const Real squares = sum_over<Real>(first, rows.size, step, all, [&](int64_t k) {
      const Real distance = static_cast<Real>(x[k]) - mean;
      return distance * distance;
    });
    const Real rstd = Real(1) / std::sqrt(squares / static_cast<Real>(rows.size) + added);
    for (int64_t k = first; k < rows.size; k += step) {
      made_row[k] = normalized(static_cast<Real>(x[k]), k, mean, rstd);
    }
    keep_statistics(mean, rstd);
  });
}

// The inputs of both gradients for one element: the incoming gradient and the normalized input.
template <typename T, bool centered>
struct Elements {
  using Real = at::opmath_type<T>;
  const T* gradient;
  const T* input;
  const Real* mean;
  const Real* rstd;
  int64_t size;

  __device__ Real incoming(int64_t row, int64_t k) const { return static_cast<Real>(gradient[row * size + k]); }
  __device__ Real normalized(int64_t row, int64_t k) const {
    const Real x = static_cast<Real>(input[row * size + k]);
    return (centered ? x - mean[row] : x) * rstd[row];
  }
};

template <typename T, bool centered>
void input_gradient(
    Rows rows, const Elements<T, centered>& elements, const at::Tensor& weight, const at::Tensor& grad_input) {
  using Real = at::opmath_type<T>;
  using Pair = Sums<Real, 2>;
  const Real* const scale = data_or_null<Real>(weight);
  T* const out = grad_input.mutable_data_ptr<T>();
  each_row<Pair>(rows.count, rows.size, [=] __device__(int64_t row, int64_t first, int64_t step, auto all) {
    const Pair sum = sum_over<Pair>(first, rows.size, step, all, [&](int64_t k) {
      const Real g = elements.incoming(row, k) * (scale != nullptr ? scale[k] : Real(1));
      return Pair{{g, g * elements.normalized(row, k)}};
    });
    const Real along_one = centered ? sum.at[0] / static_cast<Real>(rows.size) : Real(0);
    const Real along_input = sum.at[1] / static_cast<Real>(rows.size);
    for (int64_t k = first; k < rows.size; k += step) {
      const Real g = elements.incoming(row, k) * (scale != nullptr ? scale[k] : Real(1));
      out[row * rows.size + k] =
          static_cast<T>((g - along_one - elements.normalized(row, k) * along_input) * elements.rstd[row]);
    }
  });
}

// Column sums over the rows, first in parts, then over the parts. Adjacent threads process adjacent columns.
template <typename T, typename W, bool centered>
void parameter_gradients(
    Rows rows, const Elements<T, centered>& elements, const at::Tensor& grad_weight, const at::Tensor& grad_bias) {
  using Real = at::opmath_type<T>;
  using Pair = Sums<Real, 2>;
  const int64_t parts = std::clamp<int64_t>(rows.count / 32, 1, 64);
  const at::Tensor partial = aten::empty(
      {parts, rows.size, 2},
      (grad_weight.defined() ? grad_weight : grad_bias).options().dtype(c10::CppTypeToScalarType<Real>::value));
  Pair* const sums = reinterpret_cast<Pair*>(partial.mutable_data_ptr<Real>());
  for_each(parts * rows.size, [=] __device__(int64_t i) {
    const int64_t part = i / rows.size, k = i % rows.size;
    const int64_t begin = rows.count * part / parts, end = rows.count * (part + 1) / parts;
    sums[i] = sum_over<Pair>(begin, end, 1, OwnRow(), [&](int64_t row) {
      const Real g = elements.incoming(row, k);
      return Pair{{g, g * elements.normalized(row, k)}};
    });
  });
  W* const to_weight = mutable_data_or_null<W>(grad_weight);
  W* const to_bias = mutable_data_or_null<W>(grad_bias);
  for_each(rows.size, [=] __device__(int64_t k) {
    Pair sum{};
    for (int64_t part = 0; part < parts; ++part) {
      sum = sum + sums[part * rows.size + k];
    }
    if (to_weight != nullptr) {
      to_weight[k] = static_cast<W>(sum.at[1]);
    }
    if (to_bias != nullptr) {
      to_bias[k] = static_cast<W>(sum.at[0]);
    }
  });
}

template <bool centered>
void backward(
    Rows rows, const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& rstd,
    const at::Tensor& weight, const at::Tensor& grad_input, const at::Tensor& grad_weight,
    const at::Tensor& grad_bias) {
  const char* const op = centered ? "native_layer_norm_backward" : "_fused_rms_norm_backward";
  musa_runtime::check_shape(op, "grad_out", grad_out, input.sizes());
  musa_runtime::check_count(op, "mean", mean, rows.count);
  musa_runtime::check_count(op, "rstd", rstd, rows.count);
  if (!grad_input.defined() && !grad_weight.defined() && !grad_bias.defined()) {
    return;
  }
  const at::Tensor g = dense_as(grad_out, input.scalar_type());
  const at::Tensor x = input.contiguous();
  MUSA_DISPATCH(input.scalar_type(), "layer_norm_backward", (MUSA_FLOATING), {
    constexpr auto real = c10::CppTypeToScalarType<op_t>::value;
    const at::Tensor means = dense_as(mean, real);
    const at::Tensor rstds = dense_as(rstd, real);
    const at::Tensor scale = dense_as(weight, real);
    const Elements<scalar_t, centered> elements{
        g.const_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), data_or_null<op_t>(means),
        rstds.const_data_ptr<op_t>(), rows.size};
    if (grad_input.defined() && rows.count * rows.size > 0) {
      input_gradient<scalar_t, centered>(rows, elements, scale, grad_input);
    }
    if (grad_weight.defined() || grad_bias.defined()) {
      const auto dtype = (grad_weight.defined() ? grad_weight : grad_bias).scalar_type();
      if (dtype == input.scalar_type()) {
        parameter_gradients<scalar_t, scalar_t, centered>(rows, elements, grad_weight, grad_bias);
      } else {
        parameter_gradients<scalar_t, op_t, centered>(rows, elements, grad_weight, grad_bias);
      }
    }
  });
}

// The input's shape with the normalized dimensions set to 1.
at::DimVector shape_of_statistics(const at::Tensor& input, at::IntArrayRef normalized_shape) {
  at::DimVector shape(input.sizes());
  std::fill(shape.end() - static_cast<int64_t>(normalized_shape.size()), shape.end(), 1);
  return shape;
}

void check_parameters(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  const auto real = at::toOpMathType(input.scalar_type());
  for (const at::Tensor& parameter : {weight, bias}) {
    TORCH_CHECK(
        !parameter.defined() || parameter.scalar_type() == input.scalar_type() || parameter.scalar_type() == real,
        "expected weight and bias to be of the input's dtype ", input.scalar_type(), " or of ", real, ", got ",
        parameter.scalar_type());
  }
}

at::Tensor gradient_for(const at::Tensor& parameter, bool wanted, const at::Tensor& input, at::IntArrayRef shape) {
  return !wanted ? at::Tensor() : aten::empty(shape, parameter.defined() ? parameter.options() : input.options());
}

} // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_layer_norm(
    const at::Tensor& input, at::IntArrayRef normalized_shape, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias, double eps) {
  const at::Tensor scale = or_undefined(weight), shift = or_undefined(bias);
  const auto [count, size] = at::native::_check_layer_norm_inputs(input, normalized_shape, scale, shift);
  check_parameters(input, scale, shift);
  const at::Tensor x = input.contiguous();
  const at::Tensor out = aten::empty_like(x, at::MemoryFormat::Contiguous);
  const auto real = at::toOpMathType(input.scalar_type());
  const at::Tensor mean = aten::empty(shape_of_statistics(input, normalized_shape), input.options().dtype(real));
  const at::Tensor rstd = aten::empty_like(mean);
  const at::Tensor w = dense_as(scale, real), b = dense_as(shift, real);
  const Rows rows{count, size};
  MUSA_DISPATCH(input.scalar_type(), "layer_norm", (MUSA_FLOATING), {
    forward<scalar_t, /*centered=*/true>(rows, x, w, b, eps, out, mean, rstd);
  });
  return {out, mean, rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_layer_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, at::IntArrayRef normalized_shape, const at::Tensor& mean,
    const at::Tensor& rstd, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    std::array<bool, 3> output_mask) {
  const at::Tensor scale = or_undefined(weight), shift = or_undefined(bias);
  const auto [count, size] = at::native::_check_layer_norm_inputs(input, normalized_shape, scale, shift);
  check_parameters(input, scale, shift);
  const at::Tensor grad_input = output_mask[0] ? aten::empty_like(input, at::MemoryFormat::Contiguous) : at::Tensor();
  const at::Tensor grad_weight = gradient_for(scale, output_mask[1], input, normalized_shape);
  const at::Tensor grad_bias = gradient_for(shift.defined() ? shift : scale, output_mask[2], input, normalized_shape);
  backward</*centered=*/true>(
      Rows{count, size}, grad_out, input, mean, rstd, scale, grad_input, grad_weight, grad_bias);
  return {grad_input, grad_weight, grad_bias};
}

std::tuple<at::Tensor, at::Tensor> _fused_rms_norm(
    const at::Tensor& input, at::IntArrayRef normalized_shape, const std::optional<at::Tensor>& weight,
    std::optional<double> eps) {
  const at::Tensor scale = or_undefined(weight);
  const auto [count, size] = at::native::_check_layer_norm_inputs(input, normalized_shape, scale, at::Tensor());
  check_parameters(input, scale, at::Tensor());
  const at::Tensor x = input.contiguous();
  const at::Tensor out = aten::empty_like(x, at::MemoryFormat::Contiguous);
  const auto real = at::toOpMathType(input.scalar_type());
  const at::Tensor rstd = aten::empty(shape_of_statistics(input, normalized_shape), input.options().dtype(real));
  const at::Tensor w = dense_as(scale, real);
  const Rows rows{count, size};
  MUSA_DISPATCH(input.scalar_type(), "rms_norm", (MUSA_FLOATING), {
    const double least = eps.value_or(static_cast<double>(std::numeric_limits<op_t>::epsilon()));
    forward<scalar_t, /*centered=*/false>(rows, x, w, at::Tensor(), least, out, at::Tensor(), rstd);
  });
  return {out, rstd};
}

std::tuple<at::Tensor, at::Tensor> _fused_rms_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, at::IntArrayRef normalized_shape, const at::Tensor& rstd,
    const std::optional<at::Tensor>& weight, std::array<bool, 2> output_mask) {
  const at::Tensor scale = or_undefined(weight);
  const auto [count, size] = at::native::_check_layer_norm_inputs(input, normalized_shape, scale, at::Tensor());
  check_parameters(input, scale, at::Tensor());
  const at::Tensor grad_input = output_mask[0] ? aten::empty_like(input, at::MemoryFormat::Contiguous) : at::Tensor();
  const at::Tensor grad_weight = gradient_for(scale, output_mask[1], input, normalized_shape);
  backward</*centered=*/false>(
      Rows{count, size}, grad_out, input, at::Tensor(), rstd, scale, grad_input, grad_weight, at::Tensor());
  return {grad_input, grad_weight};
}

} // namespace musa_ops_ported
