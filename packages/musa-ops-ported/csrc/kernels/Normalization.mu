// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Batch normalization on one device, and in parts for synchronization across devices.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <musa_runtime/argument_checks.h>

#include "engines/aten.h"
#include "engines/channels.muh"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/optional.h"
#include "engines/rows.muh"
#include "kernels/Normalization.h"
#include "planes.muh"

namespace musa_ops_ported {
namespace {

at::ScalarType real_of(const at::Tensor& input) { return at::toOpMathType(input.scalar_type()); }
at::Tensor per_channel(const at::Tensor& input) {
  return aten::empty({input.size(1)}, input.options().dtype(real_of(input)));
}

void check_channels(const at::Tensor& input, at::ArrayRef<at::Tensor> parameters) {
  TORCH_CHECK(input.dim() >= 2, "expected at least 2D input (got ", input.dim(), "D input)");
  for (const at::Tensor& parameter : parameters) {
    TORCH_CHECK(
        !parameter.defined() || input.numel() == 0 || parameter.numel() == input.size(1),
        "expected an element for each of ", input.size(1), " channels, got a tensor of size ", parameter.sizes());
  }
}

// ---- statistics

// Moments of a set of elements: count, sum, and sum of squared differences from the mean.
template <typename Real>
struct Moments {
  Real count, sum, squares;

  friend __device__ Moments operator+(const Moments& a, const Moments& b) {
    if (a.count == Real(0) || b.count == Real(0)) {
      return a.count == Real(0) ? b : a;
    }
    const Real count = a.count + b.count;
    const Real distance = b.sum / b.count - a.sum / a.count;
    return {count, a.sum + b.sum, a.squares + b.squares + distance * distance * (a.count * (b.count / count))};
  }
};

// Computes mean and biased variance per channel in one pass: a thread computes the moments of a few elements in
// registers, which stays accurate for a large mean, and merges them with its previous ones.
template <typename T>
void channel_statistics(const at::Tensor& planes, const at::Tensor& means, const at::Tensor& variances) {
  using Real = at::opmath_type<T>;
  using Of = Moments<Real>;
  const T* const in = planes.const_data_ptr<T>();
  Real* const mean_of = means.mutable_data_ptr<Real>();
  Real* const variance_of = variances.mutable_data_ptr<Real>();
  reduce_channels<Of, 1>(
      {planes},
      [=] __device__(ChannelRun<1>& run) -> Of {
        Of all{};
        run.in_groups<8, Real>(
            [&](const int64_t* at) { return static_cast<Real>(in[at[0]]); },
            [&](int n, const Real* x) {
              Of some{static_cast<Real>(n), 0, 0};
              for (int i = 0; i < n; ++i) {
                some.sum += x[i];
              }
              const Real mean = some.sum / some.count;
              for (int i = 0; i < n; ++i) {
                some.squares += (x[i] - mean) * (x[i] - mean);
              }
              all = all + some;
            });
        return all;
      },
      [=] __device__(int64_t channel, const Of& all) {
        mean_of[channel] = all.sum / all.count;
        variance_of[channel] = all.squares / all.count;
      });
}

struct Statistics {
  at::Tensor mean, variance; // biased

  explicit Statistics(const at::Tensor& input) : mean(per_channel(input)), variance(per_channel(input)) {
    TORCH_CHECK(
        input.numel() > 0, "input tensor must have at least one element, but got input_sizes = ", input.sizes());
    const at::Tensor planes = as_planes(input);
    MUSA_DISPATCH(input.scalar_type(), "batch_norm_stats", (MUSA_FLOATING), {
      channel_statistics<scalar_t>(planes, mean, variance);
    });
  }
};

at::Tensor inverse_deviation(const at::Tensor& variance, double eps) { return variance.add(eps).rsqrt(); }

// running = (1 - momentum) * running + momentum * factor * value
template <typename Running, typename Real>
void move_towards(const at::Tensor& running, const at::Tensor& value, double momentum, double factor) {
  Running* const to = running.mutable_data_ptr<Running>();
  const Real* const from = value.const_data_ptr<Real>();
  const int64_t step = running.stride(0);
  const Real share = static_cast<Real>(momentum), scale = static_cast<Real>(factor);
  for_each(value.numel(), [=] __device__(int64_t i) {
    to[i * step] = static_cast<Running>((Real(1) - share) * static_cast<Real>(to[i * step]) + share * scale * from[i]);
  });
}
void update_running(const at::Tensor& running, const at::Tensor& value, double momentum, double factor = 1) {
  if (!running.defined()) {
    return;
  }
  MUSA_DISPATCH(running.scalar_type(), "batch_norm_update_stats", (MUSA_FLOATING), {
    if (value.scalar_type() == at::kDouble) {
      move_towards<scalar_t, double>(running, value, momentum, factor);
    } else {
      move_towards<scalar_t, float>(running, value, momentum, factor);
    }
  });
}
void update_running(
    const at::Tensor& input, const Statistics& statistics, const at::Tensor& mean, const at::Tensor& variance,
    double momentum) {
  const auto count = static_cast<double>(input.numel() / input.size(1));
  update_running(mean, statistics.mean, momentum);
  update_running(variance, statistics.variance, momentum, count / (count - 1));
}

// ---- elements

template <typename T>
void normalize(
    const at::Tensor& input, const at::Tensor& means, const at::Tensor& invstds, const at::Tensor& weight,
    const at::Tensor& bias, const at::Tensor& output) {
  using Real = at::opmath_type<T>;
  const T* const in = input.const_data_ptr<T>();
  const Real* const mean = means.const_data_ptr<Real>();
  const Real* const invstd = invstds.const_data_ptr<Real>();
  const Real* const scale = data_or_null<Real>(weight);
  const Real* const shift = data_or_null<Real>(bias);
  T* const out = output.mutable_data_ptr<T>();
  each_channel<2>({output, input}, [=] __device__(ChannelRun<2>& run) {
    const int64_t channel = run.channel;
    const Real center = mean[channel];
    const Real factor = scale != nullptr ? scale[channel] * invstd[channel] : invstd[channel];
    const Real offset = shift != nullptr ? shift[channel] : Real(0);
    struct Element {
      Real x;
      int64_t to;
    };
    run.in_groups<4, Element>(
        [&](const int64_t* at) { return Element{static_cast<Real>(in[at[1]]), at[0]}; },
        [&](int n, const Element* elements) {
          for (int i = 0; i < n; ++i) {
            const Real y = (elements[i].x - center) * factor;
            out[elements[i].to] = static_cast<T>(shift != nullptr ? y + offset : y);
          }
        });
  });
}

void normalize_into(
    const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd, const at::Tensor& weight,
    const at::Tensor& bias, const at::Tensor& output) {
  const auto real = real_of(input);
  const at::Tensor planes = as_planes(input);
  const at::Tensor m = dense_as(mean, real), s = dense_as(invstd, real);
  const at::Tensor w = dense_as(weight, real), b = dense_as(bias, real);
  write_planes(output, [&](const at::Tensor& out) {
    MUSA_DISPATCH(
        input.scalar_type(), "batch_norm_elemt", (MUSA_FLOATING), { normalize<scalar_t>(planes, m, s, w, b, out); });
  });
}

// ---- gradients

// Per channel: the sum of the incoming gradient, and of the gradient times (input - mean).
template <typename T>
void channel_sums(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& means, const at::Tensor& sum_dy,
    const at::Tensor& sum_dy_xmu) {
  using Real = at::opmath_type<T>;
  using Pair = Sums<Real, 2>;
  const T* const g = grad_out.const_data_ptr<T>();
  const T* const x = input.const_data_ptr<T>();
  const Real* const mean_of = means.const_data_ptr<Real>();
  Real* const plain = sum_dy.mutable_data_ptr<Real>();
  Real* const weighted = sum_dy_xmu.mutable_data_ptr<Real>();
  reduce_channels<Pair, 2>(
      {grad_out, input},
      [=] __device__(ChannelRun<2>& run) -> Pair {
        const Real mean = mean_of[run.channel];
        Pair all{};
        run.in_groups<8, Pair>(
            [&](const int64_t* at) { return Pair{{static_cast<Real>(g[at[0]]), static_cast<Real>(x[at[1]])}}; },
            [&](int n, const Pair* elements) {
              Pair some{};
              for (int i = 0; i < n; ++i) {
                const Real gradient = elements[i].at[0];
                some = some + Pair{{gradient, gradient * (elements[i].at[1] - mean)}};
              }
              all = all + some;
            });
        return all;
      },
      [=] __device__(int64_t channel, const Pair& all) {
        plain[channel] = all.at[0];
        weighted[channel] = all.at[1];
      });
}

struct GradientSums {
  at::Tensor plain, weighted;

  GradientSums(const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean)
      : plain(per_channel(input)), weighted(per_channel(input)) {
    const at::Tensor g = as_planes(grad_out), x = as_planes(input);
    MUSA_DISPATCH(input.scalar_type(), "batch_norm_backward_reduce", (MUSA_FLOATING), {
      channel_sums<scalar_t>(g, x, mean, plain, weighted);
    });
  }
};

// The sums are undefined if the statistics do not depend on the input. total: number of elements per channel.
template <typename T>
void input_gradient(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& means, const at::Tensor& invstds,
    const at::Tensor& weight, const at::Tensor& sum_dy, const at::Tensor& sum_dy_xmu, const at::Tensor& total,
    const at::Tensor& grad_input) {
  using Real = at::opmath_type<T>;
  const T* const g = grad_out.const_data_ptr<T>();
  const T* const x = input.const_data_ptr<T>();
  const Real* const mean = means.const_data_ptr<Real>();
  const Real* const invstd = invstds.const_data_ptr<Real>();
  const Real* const scale = data_or_null<Real>(weight);
  const Real* const plain = data_or_null<Real>(sum_dy);
  const Real* const weighted = data_or_null<Real>(sum_dy_xmu);
  const Real* const count = data_or_null<Real>(total);
  T* const out = grad_input.mutable_data_ptr<T>();
  each_channel<3>({grad_input, grad_out, input}, [=] __device__(ChannelRun<3>& run) {
    const int64_t channel = run.channel;
    const Real factor = scale != nullptr ? scale[channel] * invstd[channel] : invstd[channel];
    const bool moves = plain != nullptr;
    const Real center = mean[channel];
    const Real along_one = moves ? plain[channel] / *count : Real(0);
    const Real along_input = moves ? invstd[channel] * invstd[channel] * weighted[channel] / *count : Real(0);
    struct Element {
      Real gradient, x;
      int64_t to;
    };
    run.in_groups<4, Element>(
        [&](const int64_t* at) {
          return Element{static_cast<Real>(g[at[1]]), moves ? static_cast<Real>(x[at[2]]) : center, at[0]};
        },
        [&](int n, const Element* elements) {
          for (int i = 0; i < n; ++i) {
            Real gradient = elements[i].gradient;
            if (moves) {
              gradient -= along_one + (elements[i].x - center) * along_input;
            }
            out[elements[i].to] = static_cast<T>(gradient * factor);
          }
        });
  });
}

at::Tensor input_gradient_of(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
    const at::Tensor& weight, const at::Tensor& sum_dy, const at::Tensor& sum_dy_xmu, const at::Tensor& total) {
  const at::Tensor grad_input = empty_planes_like(input);
  const at::Tensor g = as_planes(grad_out), x = as_planes(input);
  const at::Tensor w = dense_as(weight, real_of(input));
  write_planes(grad_input, [&](const at::Tensor& out) {
    MUSA_DISPATCH(input.scalar_type(), "batch_norm_backward_elemt", (MUSA_FLOATING), {
      input_gradient<scalar_t>(g, x, mean, invstd, w, sum_dy, sum_dy_xmu, total, out);
    });
  });
  return grad_input;
}

// ---- statistics across devices

template <typename Real>
void merge_statistics(
    const at::Tensor& means, const at::Tensor& invstds, const at::Tensor& counts, double eps, const at::Tensor& mean,
    const at::Tensor& invstd, const at::Tensor& unbiased) {
  const int64_t devices = means.size(0), channels = means.size(1);
  const Real* const mean_of = means.const_data_ptr<Real>();
  const Real* const invstd_of = invstds.const_data_ptr<Real>();
  const Real* const count_of = counts.const_data_ptr<Real>();
  Real* const to_mean = mean.mutable_data_ptr<Real>();
  Real* const to_invstd = invstd.mutable_data_ptr<Real>();
  Real* const to_unbiased = unbiased.mutable_data_ptr<Real>();
  const Real least = static_cast<Real>(eps);
  for_each(channels, [=] __device__(int64_t channel) {
    Real center = 0, squares = 0, count = 0;
    for (int64_t device = 0; device < devices; ++device) {
      const Real n = count_of[device];
      if (n <= Real(0)) {
        continue; // a device without elements contributes nothing
      }
      const int64_t at = device * channels + channel;
      const Real deviation = Real(1) / invstd_of[at];
      const Real distance = mean_of[at] - center;
      const Real both = count + n;
      squares += (deviation * deviation - least) * n + distance * distance * count * n / both;
      center += distance * n / both;
      count = both;
    }
    to_mean[channel] = center;
    to_invstd[channel] = Real(1) / std::sqrt(squares / count + least);
    to_unbiased[channel] = squares / (count - Real(1));
  });
}

// ---- complete forward and backward

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Triple batch_norm_into(
    const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
    const at::Tensor& running_mean, const at::Tensor& running_var, bool training, double momentum, double eps) {
  check_channels(input, {weight, bias, running_mean, running_var});
  if (!training) {
    TORCH_CHECK(
        running_mean.defined() && running_var.defined(),
        "running_mean and running_var must be defined in evaluation mode");
    const at::Tensor invstd = inverse_deviation(running_var.to(real_of(input)), eps);
    normalize_into(input, running_mean, invstd, weight, bias, output);
    const at::Tensor none = aten::empty({0}, input.options().dtype(real_of(input)));
    return {output, none, none.clone()};
  }
  const Statistics statistics(input);
  update_running(input, statistics, running_mean, running_var, momentum);
  const at::Tensor invstd = inverse_deviation(statistics.variance, eps);
  normalize_into(input, statistics.mean, invstd, weight, bias, output);
  return {output, statistics.mean, invstd};
}

Triple batch_norm(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& running_mean, const at::Tensor& running_var, bool training, double momentum, double eps) {
  return batch_norm_into(
      empty_planes_like(input), input, or_undefined(weight), or_undefined(bias), running_mean, running_var, training,
      momentum, eps);
}

void give(const at::Tensor& made, at::Tensor& out) {
  aten::resize_output(out, made.sizes());
  out.copy_(made);
}

void batch_norm_to(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& running_mean, const at::Tensor& running_var, bool training, double momentum, double eps,
    at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  aten::resize_output(out, input.sizes());
  at::assert_no_internal_overlap(out);
  const auto [output, mean, invstd] = batch_norm_into(
      out, input, or_undefined(weight), or_undefined(bias), running_mean, running_var, training, momentum, eps);
  give(mean, save_mean);
  give(invstd, save_invstd);
}

Triple backward(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& running_mean,
    const at::Tensor& running_var, const at::Tensor& save_mean, const at::Tensor& save_invstd, bool train, double eps,
    std::array<bool, 3> mask) {
  const auto real = real_of(input);
  check_channels(input, {weight, train ? save_mean : running_mean, train ? save_invstd : running_var});
  musa_runtime::check_shape("batch_norm_backward", "grad_out", grad_out, input.sizes());
  TORCH_CHECK(
      train ? save_mean.defined() && save_invstd.defined() : running_mean.defined() && running_var.defined(),
      "the statistics of the forward pass must be given");
  const at::Tensor mean = dense_as(train ? save_mean : running_mean, real);
  const at::Tensor invstd = train ? dense_as(save_invstd, real) : inverse_deviation(dense_as(running_var, real), eps);
  at::Tensor grad_input, grad_weight, grad_bias;
  const at::Tensor g = grad_out.to(input.scalar_type());
  std::optional<GradientSums> sums;
  if (mask[1] || mask[2] || (mask[0] && train)) {
    sums.emplace(g, input, mean);
  }
  if (mask[0]) {
    const int64_t count = input.size(1) > 0 ? input.numel() / input.size(1) : 0;
    const at::Tensor none;
    const at::Tensor total = train ? aten::full({}, static_cast<double>(count), mean.options()) : none;
    grad_input = input_gradient_of(
        g, input, mean, invstd, weight, train ? sums->plain : none, train ? sums->weighted : none, total);
  }
  const auto dtype = weight.defined() ? weight.scalar_type() : input.scalar_type();
  if (mask[1]) {
    grad_weight = sums->weighted.mul(invstd).to(dtype);
  }
  if (mask[2]) {
    grad_bias = sums->plain.to(dtype);
  }
  return {grad_input, grad_weight, grad_bias};
}

} // namespace

Triple native_batch_norm(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var, bool training,
    double momentum, double eps) {
  return batch_norm(
      input, weight, bias, or_undefined(running_mean), or_undefined(running_var), training, momentum, eps);
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> native_batch_norm_out(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var, bool training,
    double momentum, double eps, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  batch_norm_to(
      input, weight, bias, or_undefined(running_mean), or_undefined(running_var), training, momentum, eps, out,
      save_mean, save_invstd);
  return {out, save_mean, save_invstd};
}

Triple _native_batch_norm_legit(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    at::Tensor& running_mean, at::Tensor& running_var, bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> _native_batch_norm_legit_out(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    at::Tensor& running_mean, at::Tensor& running_var, bool training, double momentum, double eps, at::Tensor& out,
    at::Tensor& save_mean, at::Tensor& save_invstd) {
  batch_norm_to(input, weight, bias, running_mean, running_var, training, momentum, eps, out, save_mean, save_invstd);
  return {out, save_mean, save_invstd};
}

Triple _native_batch_norm_legit_no_stats(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, at::Tensor(), at::Tensor(), training, momentum, eps);
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> _native_batch_norm_legit_no_stats_out(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    bool training, double momentum, double eps, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  batch_norm_to(input, weight, bias, at::Tensor(), at::Tensor(), training, momentum, eps, out, save_mean, save_invstd);
  return {out, save_mean, save_invstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> _batch_norm_with_update(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    at::Tensor& running_mean, at::Tensor& running_var, double momentum, double eps) {
  auto [out, mean, invstd] =
      batch_norm(input, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps);
  return {out, mean, invstd, aten::empty({0}, input.options().dtype(at::kByte))};
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&> _batch_norm_with_update_out(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    at::Tensor& running_mean, at::Tensor& running_var, double momentum, double eps, at::Tensor& out,
    at::Tensor& save_mean, at::Tensor& save_invstd, at::Tensor& reserve) {
  batch_norm_to(
      input, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps, out, save_mean, save_invstd);
  aten::resize_output(reserve, {0});
  return {out, save_mean, save_invstd, reserve};
}

std::tuple<at::Tensor, at::Tensor> batch_norm_update_stats(
    const at::Tensor& input, const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var, double momentum) {
  const at::Tensor mean = or_undefined(running_mean), variance = or_undefined(running_var);
  check_channels(input, {mean, variance});
  const Statistics statistics(input);
  update_running(input, statistics, mean, variance, momentum);
  // As on the CPU, the results have the dtype of the running statistics.
  const auto kept = (mean.defined() ? mean : variance.defined() ? variance : input).scalar_type();
  return {statistics.mean.to(kept), statistics.variance.to(kept)};
}

Triple native_batch_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var,
    const std::optional<at::Tensor>& save_mean, const std::optional<at::Tensor>& save_invstd, bool train, double eps,
    std::array<bool, 3> output_mask) {
  return backward(
      grad_out, input, or_undefined(weight), or_undefined(running_mean), or_undefined(running_var),
      or_undefined(save_mean), or_undefined(save_invstd), train, eps, output_mask);
}

Triple batch_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& weight,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var,
    const std::optional<at::Tensor>& save_mean, const std::optional<at::Tensor>& save_var, bool update, double eps,
    std::array<bool, 3> output_mask, const at::Tensor&) {
  return backward(
      grad_out, input, weight, or_undefined(running_mean), or_undefined(running_var), or_undefined(save_mean),
      or_undefined(save_var), update, eps, output_mask);
}

std::tuple<at::Tensor, at::Tensor> batch_norm_stats(const at::Tensor& input, double eps) {
  check_channels(input, {});
  const Statistics statistics(input);
  return {statistics.mean, inverse_deviation(statistics.variance, eps)};
}

at::Tensor batch_norm_elemt(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& mean, const at::Tensor& invstd, double) {
  const at::Tensor scale = or_undefined(weight), shift = or_undefined(bias);
  check_channels(input, {scale, shift, mean, invstd});
  const at::Tensor out = empty_planes_like(input);
  normalize_into(input, mean, invstd, scale, shift, out);
  return out;
}

at::Tensor& batch_norm_elemt_out(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& mean, const at::Tensor& invstd, double, at::Tensor& out) {
  const at::Tensor scale = or_undefined(weight), shift = or_undefined(bias);
  check_channels(input, {scale, shift, mean, invstd});
  aten::resize_output(out, input.sizes());
  normalize_into(input, mean, invstd, scale, shift, out);
  return out;
}

std::tuple<at::Tensor, at::Tensor> batch_norm_gather_stats_with_counts(
    const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var, double momentum,
    double eps, const at::Tensor& counts) {
  TORCH_CHECK(
      mean.dim() == 2 && mean.sizes() == invstd.sizes() && counts.numel() == mean.size(0),
      "expected statistics of (devices, channels) and a count for each device, got ", mean.sizes(), ", ",
      invstd.sizes(), " and ", counts.sizes());
  const auto real = real_of(input);
  const at::Tensor means = dense_as(mean, real), invstds = dense_as(invstd, real), numbers = dense_as(counts, real);
  const at::Tensor all_mean = aten::empty({mean.size(1)}, means.options());
  const at::Tensor all_invstd = aten::empty_like(all_mean), unbiased = aten::empty_like(all_mean);
  if (real == at::kDouble) {
    merge_statistics<double>(means, invstds, numbers, eps, all_mean, all_invstd, unbiased);
  } else {
    merge_statistics<float>(means, invstds, numbers, eps, all_mean, all_invstd, unbiased);
  }
  musa_runtime::check_shape("batch_norm_gather_stats", "running_mean", running_mean, all_mean.sizes());
  musa_runtime::check_shape("batch_norm_gather_stats", "running_var", running_var, all_mean.sizes());
  update_running(or_undefined(running_mean), all_mean, momentum);
  update_running(or_undefined(running_var), unbiased, momentum);
  return {all_mean, all_invstd};
}

std::tuple<at::Tensor, at::Tensor> batch_norm_gather_stats(
    const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var, double momentum,
    double eps, int64_t count) {
  const at::Tensor counts = aten::full({mean.size(0)}, count, input.options().dtype(real_of(input)));
  return musa_ops_ported::batch_norm_gather_stats_with_counts(
      input, mean, invstd, running_mean, running_var, momentum, eps, counts);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_backward_reduce(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
    const std::optional<at::Tensor>& weight, bool input_g, bool weight_g, bool bias_g) {
  check_channels(input, {mean, invstd});
  musa_runtime::check_shape("batch_norm_backward_reduce", "grad_out", grad_out, input.sizes());
  const auto real = real_of(input);
  const GradientSums sums(grad_out.to(input.scalar_type()), input, dense_as(mean, real));
  const at::Tensor scale = or_undefined(weight);
  const auto dtype = scale.defined() ? scale.scalar_type() : input.scalar_type();
  const at::Tensor none;
  return {
      input_g ? sums.plain : none, input_g ? sums.weighted : none,
      weight_g ? sums.weighted.mul(dense_as(invstd, real)).to(dtype) : none,
      bias_g ? sums.plain.to(dtype, /*non_blocking=*/false, /*copy=*/true) : none};
}

at::Tensor batch_norm_backward_elemt(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
    const std::optional<at::Tensor>& weight, const at::Tensor& sum_dy, const at::Tensor& sum_dy_xmu,
    const at::Tensor& count) {
  const at::Tensor scale = or_undefined(weight);
  check_channels(input, {scale, mean, invstd, sum_dy, sum_dy_xmu});
  musa_runtime::check_shape("batch_norm_backward_elemt", "grad_out", grad_out, input.sizes());
  const auto real = real_of(input);
  return input_gradient_of(
      grad_out.to(input.scalar_type()), input, dense_as(mean, real), dense_as(invstd, real), scale,
      dense_as(sum_dy, real), dense_as(sum_dy_xmu, real), dense_as(count.sum(), real));
}

} // namespace musa_ops_ported
