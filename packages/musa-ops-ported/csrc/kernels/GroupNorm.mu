// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Normalization of groups of channels of each sample.
#include <ATen/core/Tensor.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/optional.h"
#include "engines/rows.muh"
#include "kernels/GroupNorm.h"

namespace musa_ops_ported {
namespace {

// (samples, channels, places) with the strides of a tensor. A group has `width` channels.
struct Groups {
  int64_t samples, channels, places, groups, width;
  int64_t sample_step, channel_step, place_step;

  Groups(const at::Tensor& planes, int64_t count)
      : samples(planes.size(0)),
        channels(planes.size(1)),
        places(planes.size(2)),
        groups(count),
        width(channels / count),
        sample_step(planes.stride(0)),
        channel_step(planes.stride(1)),
        place_step(planes.stride(2)) {}

  __device__ int64_t channel(int64_t row, int64_t k) const { return row % groups * width + k / places; }
  __device__ int64_t at(int64_t row, int64_t k) const {
    return row / groups * sample_step + channel(row, k) * channel_step + k % places * place_step;
  }
};

at::Tensor planes_of(const at::Tensor& tensor, int64_t samples, int64_t channels, int64_t places) {
  return tensor.reshape({samples, channels, places});
}

template <typename T, typename Statistic>
void group_norm(
    const Groups& groups, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
    const at::Tensor& output, const at::Tensor& means, const at::Tensor& rstds) {
  using Real = at::opmath_type<T>;
  const T* const in = input.const_data_ptr<T>();
  const Real* const scale = data_or_null<Real>(weight);
  const Real* const shift = data_or_null<Real>(bias);
  T* const out = output.mutable_data_ptr<T>();
  Statistic* const mean_of = means.mutable_data_ptr<Statistic>();
  Statistic* const rstd_of = rstds.mutable_data_ptr<Statistic>();
  const Real least = static_cast<Real>(eps);
  const int64_t size = groups.width * groups.places;
  const Groups target(output, groups.groups);
  each_row<Real>(
      groups.samples * groups.groups, size, [=] __device__(int64_t row, int64_t first, int64_t step, auto all) {
        const auto value = [&](int64_t k) { return static_cast<Real>(in[groups.at(row, k)]); };
        const Real mean = sum_over<Real>(first, size, step, all, value) / static_cast<Real>(size);
        const Real squares = sum_over<Real>(first, size, step, all, [&](int64_t k) {
          const Real distance = value(k) - mean;
          return distance * distance;
        });
        const Real rstd = Real(1) / std::sqrt(squares / static_cast<Real>(size) + least);
        for (int64_t k = first; k < size; k += step) {
          const int64_t channel = groups.channel(row, k);
          Real y = (value(k) - mean) * rstd;
          y = scale != nullptr ? y * scale[channel] : y;
          out[target.at(row, k)] = static_cast<T>(shift != nullptr ? y + shift[channel] : y);
        }
        if (first == 0) {
          mean_of[row] = static_cast<Statistic>(mean);
          rstd_of[row] = static_cast<Statistic>(rstd);
        }
      });
}

void forward(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, int64_t samples, int64_t channels,
    int64_t places, int64_t groups, double eps, const at::Tensor& output, const at::Tensor& mean,
    const at::Tensor& rstd) {
  const at::Tensor in = planes_of(input, samples, channels, places);
  const at::Tensor out = planes_of(output, samples, channels, places);
  const auto real = at::toOpMathType(input.scalar_type());
  const at::Tensor w = dense_as(weight, real), b = dense_as(bias, real);
  const Groups where(in, groups);
  MUSA_DISPATCH(input.scalar_type(), "group_norm", (MUSA_FLOATING), {
    if (mean.scalar_type() == input.scalar_type()) {
      group_norm<scalar_t, scalar_t>(where, in, w, b, eps, out, mean, rstd);
    } else {
      group_norm<scalar_t, op_t>(where, in, w, b, eps, out, mean, rstd);
    }
  });
  if (!out.is_alias_of(output)) {
    output.copy_(out.view(output.sizes()));
  }
}

// Sums over the places of each sample and channel: the incoming gradient, and the gradient times the normalized
// input.
template <typename T>
void channel_sums(
    const Groups& of_gradient, const Groups& of_input, const at::Tensor& grad_out, const at::Tensor& input,
    const at::Tensor& means, const at::Tensor& rstds, const at::Tensor& sums) {
  using Real = at::opmath_type<T>;
  using Pair = Sums<Real, 2>;
  const T* const g = grad_out.const_data_ptr<T>();
  const T* const x = input.const_data_ptr<T>();
  const Real* const mean_of = means.const_data_ptr<Real>();
  const Real* const rstd_of = rstds.const_data_ptr<Real>();
  Pair* const to = reinterpret_cast<Pair*>(sums.mutable_data_ptr<Real>());
  each_row<Pair>(
      of_input.samples * of_input.channels, of_input.places,
      [=] __device__(int64_t i, int64_t first, int64_t step, auto all) {
        const int64_t sample = i / of_input.channels, channel = i % of_input.channels;
        const int64_t row = sample * of_input.groups + channel / of_input.width;
        const T* const gradients = g + sample * of_gradient.sample_step + channel * of_gradient.channel_step;
        const T* const inputs = x + sample * of_input.sample_step + channel * of_input.channel_step;
        const Real mean = mean_of[row], rstd = rstd_of[row];
        const Pair sum = sum_over<Pair>(first, of_input.places, step, all, [&](int64_t k) {
          const Real gradient = static_cast<Real>(gradients[k * of_gradient.place_step]);
          return Pair{{gradient, gradient * (static_cast<Real>(inputs[k * of_input.place_step]) - mean) * rstd}};
        });
        if (first == 0) {
          to[i] = sum;
        }
      });
}

// Combines the weighted sums of the channels into the sums of a group.
template <typename Real>
void group_sums(const Groups& groups, const at::Tensor& sums, const at::Tensor& weight, const at::Tensor& of_groups) {
  using Pair = Sums<Real, 2>;
  const Pair* const from = reinterpret_cast<const Pair*>(sums.const_data_ptr<Real>());
  const Real* const scale = data_or_null<Real>(weight);
  Pair* const to = reinterpret_cast<Pair*>(of_groups.mutable_data_ptr<Real>());
  for_each(groups.samples * groups.groups, [=] __device__(int64_t row) {
    Pair sum{};
    for (int64_t k = 0; k < groups.width; ++k) {
      const int64_t channel = row % groups.groups * groups.width + k;
      const Pair part = from[row / groups.groups * groups.channels + channel];
      const Real factor = scale != nullptr ? scale[channel] : Real(1);
      sum.at[0] += part.at[0] * factor;
      sum.at[1] += part.at[1] * factor;
    }
    to[row] = sum;
  });
}

template <typename T>
void input_gradient(
    const Groups& groups, const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& means,
    const at::Tensor& rstds, const at::Tensor& weight, const at::Tensor& of_groups, const at::Tensor& grad_input) {
  using Real = at::opmath_type<T>;
  using Pair = Sums<Real, 2>;
  const T* const g = grad_out.const_data_ptr<T>();
  const T* const x = input.const_data_ptr<T>();
  const Real* const mean_of = means.const_data_ptr<Real>();
  const Real* const rstd_of = rstds.const_data_ptr<Real>();
  const Real* const scale = data_or_null<Real>(weight);
  const Pair* const sums = reinterpret_cast<const Pair*>(of_groups.const_data_ptr<Real>());
  T* const to = grad_input.mutable_data_ptr<T>();
  const Real share = Real(1) / static_cast<Real>(groups.width * groups.places);
  // The last two operands are the sample index and the channel index.
  const int64_t samples[] = {1, 0, 0}, channels[] = {0, 1, 0};
  for_each_offset(
      input.sizes(),
      [=] __device__(int64_t, const auto& at) {
        const int64_t channel = at[4];
        const int64_t row = at[3] * groups.groups + channel / groups.width;
        const Real gradient = static_cast<Real>(g[at[1]]) * (scale != nullptr ? scale[channel] : Real(1));
        const Real normalized = (static_cast<Real>(x[at[2]]) - mean_of[row]) * rstd_of[row];
        to[at[0]] =
            static_cast<T>(rstd_of[row] * (gradient - share * (sums[row].at[0] + normalized * sums[row].at[1])));
      },
      grad_input.strides(), grad_out.strides(), input.strides(), at::IntArrayRef(samples), at::IntArrayRef(channels));
}

template <typename Real, typename W>
void parameter_gradients(
    const Groups& groups, const at::Tensor& sums, const at::Tensor& grad_weight, const at::Tensor& grad_bias) {
  using Pair = Sums<Real, 2>;
  const Pair* const from = reinterpret_cast<const Pair*>(sums.const_data_ptr<Real>());
  W* const to_weight = mutable_data_or_null<W>(grad_weight);
  W* const to_bias = mutable_data_or_null<W>(grad_bias);
  for_each(groups.channels, [=] __device__(int64_t channel) {
    Pair sum{};
    for (int64_t sample = 0; sample < groups.samples; ++sample) {
      sum = sum + from[sample * groups.channels + channel];
    }
    if (to_weight != nullptr) {
      to_weight[channel] = static_cast<W>(sum.at[1]);
    }
    if (to_bias != nullptr) {
      to_bias[channel] = static_cast<W>(sum.at[0]);
    }
  });
}

void backward(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& rstd,
    const at::Tensor& weight, int64_t samples, int64_t channels, int64_t places, int64_t groups,
    const at::Tensor& grad_input, const at::Tensor& grad_weight, const at::Tensor& grad_bias) {
  const at::Tensor g = planes_of(grad_out, samples, channels, places);
  const at::Tensor x = planes_of(input, samples, channels, places);
  const auto real = at::toOpMathType(input.scalar_type());
  const at::Tensor means = dense_as(mean, real), rstds = dense_as(rstd, real), w = dense_as(weight, real);
  const at::Tensor sums = aten::empty({samples, channels, 2}, input.options().dtype(real));
  const Groups of_input(x, groups), of_gradient(g, groups);
  MUSA_DISPATCH(input.scalar_type(), "group_norm_backward", (MUSA_FLOATING), {
    channel_sums<scalar_t>(of_gradient, of_input, g, x, means, rstds, sums);
    if (grad_input.defined()) {
      const at::Tensor of_groups = aten::empty({samples, groups, 2}, sums.options());
      group_sums<op_t>(of_input, sums, w, of_groups);
      const at::Tensor out = planes_of(grad_input, samples, channels, places);
      input_gradient<scalar_t>(of_input, g, x, means, rstds, w, of_groups, out);
      if (!out.is_alias_of(grad_input)) {
        grad_input.copy_(out.view(grad_input.sizes()));
      }
    }
    if (grad_weight.defined() || grad_bias.defined()) {
      const auto dtype = (grad_weight.defined() ? grad_weight : grad_bias).scalar_type();
      if (dtype == input.scalar_type()) {
        parameter_gradients<op_t, scalar_t>(of_input, sums, grad_weight, grad_bias);
      } else {
        parameter_gradients<op_t, op_t>(of_input, sums, grad_weight, grad_bias);
      }
    }
  });
}

void check(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, int64_t samples, int64_t channels,
    int64_t places, int64_t groups) {
  TORCH_CHECK(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  TORCH_CHECK(
      channels % groups == 0, "Expected number of channels in input to be divisible by num_groups, but got ", channels,
      " channels and num_groups=", groups);
  TORCH_CHECK(
      input.numel() == samples * channels * places, "Expected an input of ", samples, " samples of ", channels,
      " channels of ", places, " elements, but got input of shape ", input.sizes());
  for (const at::Tensor& parameter : {weight, bias}) {
    TORCH_CHECK(
        !parameter.defined() || (parameter.dim() == 1 && parameter.numel() == channels),
        "Expected weight and bias to be vectors of size equal to the number of channels in input, "
        "but got one of shape ",
        parameter.sizes(), " and input of shape ", input.sizes());
    TORCH_CHECK(
        !parameter.defined() || parameter.scalar_type() == input.scalar_type() ||
            parameter.scalar_type() == at::toOpMathType(input.scalar_type()),
        "expected weight and bias to be of the input's dtype ", input.scalar_type(), " or of ",
        at::toOpMathType(input.scalar_type()), ", got ", parameter.scalar_type());
  }
}

at::Tensor gradient_for(const at::Tensor& weight, bool wanted, const at::Tensor& input, int64_t channels) {
  return !wanted ? at::Tensor() : aten::empty({channels}, weight.defined() ? weight.options() : input.options());
}

} // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_group_norm(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias, int64_t N,
    int64_t C, int64_t HxW, int64_t group, double eps) {
  const at::Tensor scale = or_undefined(weight), shift = or_undefined(bias);
  check(input, scale, shift, N, C, HxW, group);
  TORCH_CHECK(
      input.is_contiguous(input.suggest_memory_format()),
      "Expected an input that is contiguous in its memory format, got strides ", input.strides());
  const at::Tensor output = aten::empty_like(input, input.suggest_memory_format());
  // As on the CPU, statistics have the dtype of weight and bias.
  const auto kept = scale.defined() ? scale.scalar_type() : shift.defined() ? shift.scalar_type() : input.scalar_type();
  const at::Tensor mean = aten::empty({N, group}, input.options().dtype(kept));
  const at::Tensor rstd = aten::empty_like(mean);
  forward(input, scale, shift, N, C, HxW, group, eps, output, mean, rstd);
  return {output, mean, rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_group_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& rstd,
    const std::optional<at::Tensor>& weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
    std::array<bool, 3> output_mask) {
  const at::Tensor scale = or_undefined(weight);
  check(input, scale, at::Tensor(), N, C, HxW, group);
  TORCH_CHECK(
      grad_out.scalar_type() == input.scalar_type() && grad_out.numel() == input.numel(), "expected a gradient of ",
      input.scalar_type(), " and size ", input.sizes(), ", got ", grad_out.scalar_type(), " and ", grad_out.sizes());
  TORCH_CHECK(
      mean.numel() == N * group && rstd.numel() == N * group, "expected statistics of each of ", N, " x ", group,
      " groups, got ", mean.sizes(), " and ", rstd.sizes());
  const at::Tensor grad_input = output_mask[0] ? aten::empty_like(input, input.suggest_memory_format()) : at::Tensor();
  const at::Tensor grad_weight = gradient_for(scale, output_mask[1], input, C);
  const at::Tensor grad_bias = gradient_for(scale, output_mask[2], input, C);
  backward(grad_out, input, mean, rstd, scale, N, C, HxW, group, grad_input, grad_weight, grad_bias);
  return {grad_input, grad_weight, grad_bias};
}

} // namespace musa_ops_ported
