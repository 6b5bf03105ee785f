// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Convolution.
#include <ATen/core/Tensor.h> // before the operators' headers, which only declare it
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/clamp_cpu_dispatch.h>
#include <ATen/ops/clamp_min_cpu_dispatch.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/elu_cpu_dispatch.h>
#include <ATen/ops/hardswish_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/sigmoid_cpu_dispatch.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/tanh_cpu_dispatch.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include <mudnn_backend/lending.h>
#include "support/alias.h"
#include "support/call.h"
#include "support/groups.h"
#include "support/outputs.h"
#include "support/results.h"
#include "support/shapes.h"

namespace musa::dnn {

template <>
struct Parameters::Of<Convolution::FusedActivationDesc> {
  using Mode = Convolution::FusedActivationDesc::Mode;
  Mode mode;
  double alpha;
  explicit Of(const Convolution::FusedActivationDesc& desc) : mode(desc.mode_), alpha(desc.alpha_) {}
};

namespace {

using namespace musa_emulator::dnn;

using Access = TensorAccess;
using Activation = Parameters::Of<Convolution::FusedActivationDesc>;
using Format = Tensor::Format;
using Type = Tensor::Type;

constexpr int kMostDims = 5;

// Sizes and strides in torch's order: N, C, space; for a filter: outputs, inputs, space.
struct Layout {
  int ndim;
  std::array<int64_t, kMostDims> dims;
  std::array<int64_t, kMostDims> strides;

  int64_t space() const { // of one channel
    int64_t size = 1;
    for (int i = 2; i < ndim; ++i) {
      size *= dims[i];
    }
    return size;
  }
  bool dense(std::initializer_list<int> from_last) const {
    int64_t expected = 1;
    for (const int i : from_last) {
      if (dims[i] != 1 && strides[i] != expected) {
        return false;
      }
      expected *= dims[i];
    }
    return true;
  }
  bool channels_first() const { return ndim == 4 ? dense({3, 2, 1, 0}) : dense({4, 3, 2, 1, 0}); }
  bool channels_last() const { return ndim == 4 ? dense({1, 3, 2, 0}) : dense({1, 4, 3, 2, 0}); }
};

// Returns the position of torch's dimension i in the format.
int position(Format format, int ndim, int i) {
  switch (format) {
    case Format::NHWC:
    case Format::NDHWC: return i == 0 ? 0 : i == 1 ? ndim - 1 : i - 1;
    case Format::HWCN:
    case Format::DHWCN: return i == 0 ? ndim - 1 : i == 1 ? ndim - 2 : i - 2;
    default: return i;
  }
}

Layout layout_of(const Tensor& tensor) {
  Layout layout{Access::ndim(tensor), {}, {}};
  for (int i = 0; i < layout.ndim; ++i) {
    const int from = position(Access::format(tensor), layout.ndim, i);
    layout.dims[i] = Access::dims(tensor)[from];
    layout.strides[i] = Access::strides(tensor)[from];
  }
  return layout;
}

// The operands of a convolution in terms of the forward direction: `out` may be its gradient, and so on.
struct Geometry {
  std::vector<int64_t> pad, stride, dilation;
  int64_t groups;
  Layout out, in, weight;
};

bool is_float(const Tensor& tensor) { return has_type(tensor, {Type::HALF, Type::BFLOAT16, Type::FLOAT}); }

bool is_quantised(const Tensor& tensor) { return has_type(tensor, {Type::QINT8, Type::INT8}); }

bool format_has_rank(const Tensor& tensor, int rank) {
  switch (Access::format(tensor)) {
    case Format::UNKNOWN: return true;
    case Format::NCW:
    case Format::NWC: return rank == 3;
    case Format::NCHW:
    case Format::NHWC:
    case Format::HWCN: return rank == 4;
    case Format::NCDHW:
    case Format::NDHWC:
    case Format::DHWCN: return rank == 5;
  }
  return false;
}

bool shares_memory_with_itself(const Tensor& tensor) {
  for (int i = 0; i < Access::ndim(tensor); ++i) {
    if (Access::dims(tensor)[i] > 1 && Access::strides(tensor)[i] <= 0) {
      return true;
    }
  }
  return false;
}

// Checks that all directions share; `result` is the operand that is written.
bool prepare(Call& call, Geometry& g, const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& result) {
  const auto space = static_cast<int>(g.pad.size());
  if (!call.require(
          Access::present(out) && Access::present(in) && Access::present(weight), Status::INVALID_PARAMETER,
          "an operand of the convolution is absent") ||
      !call.require(space > 0, Status::INVALID_PARAMETER, "padding, strides and dilation were not set") ||
      !call.require(space == 2 || space == 3, Status::NOT_SUPPORTED, "only 2-d and 3-d convolutions are supported")) {
    return false;
  }
  for (const Tensor* tensor : {&out, &in, &weight}) {
    if (!call.require(
            Access::ndim(*tensor) == space + 2 && format_has_rank(*tensor, space + 2), Status::INVALID_PARAMETER,
            "padding, shape and format differ in rank") ||
        !call.require(!has_type(*tensor, {Type::DOUBLE}), Status::NOT_SUPPORTED, "DOUBLE tensors are not supported")) {
      return false;
    }
  }
  g.out = layout_of(out);
  g.in = layout_of(in);
  g.weight = layout_of(weight);
  if (!call.require(
          g.out.dims[0] == g.in.dims[0] && g.in.dims[1] == g.weight.dims[1] * g.groups &&
              g.out.dims[1] == g.weight.dims[0] && g.weight.dims[0] % g.groups == 0,
          Status::INVALID_PARAMETER, "batches, channels and groups do not match") ||
      !call.require(
          !shares_memory_with_itself(result), Status::INVALID_PARAMETER, "elements of the output share memory")) {
    return false;
  }
  for (int i = 0; i < space; ++i) {
    const int64_t left = g.in.dims[i + 2] + 2 * g.pad[i] - g.dilation[i] * (g.weight.dims[i + 2] - 1) - 1;
    if (!call.require(
            left >= 0 && g.out.dims[i + 2] == left / g.stride[i] + 1, Status::INVALID_PARAMETER,
            "the sizes of input, filter and output do not match")) {
      return false;
    }
  }
  return true;
}

// The factors have the same floating type; the result has that type or FLOAT.
bool accept_float(Call& call, const Tensor& result, const Tensor& left, const Tensor& right) {
  return call.require(
      is_float(left) && same_type(left, right) && (same_type(result, left) || has_type(result, {Type::FLOAT})),
      Status::NOT_SUPPORTED, "the types are not supported");
}

// ---- Matrix products. A convolution with a filter of one element is a matrix product, written directly to the
// caller's memory. For channels-first formats there is one product per image, which is slower than the general
// implementation for small images; the sizes below are the measured break-even points. Device backends have their own
// kernels for these filters, from which `benchmark` selects as in torch.

bool is_pointwise(const Geometry& g) {
  const auto all = [](const std::vector<int64_t>& values, int64_t value) {
    return std::all_of(values.begin(), values.end(), [value](int64_t own) { return own == value; });
  };
  return g.groups == 1 && g.weight.space() == 1 && all(g.pad, 0) && all(g.stride, 1);
}

enum class Order { ChannelsFirst, ChannelsLast };

// Returns the order of both; nullopt if they differ or have gaps.
std::optional<Order> order_of(const Layout& out, const Layout& in) {
  return out.channels_last() && in.channels_last()  ? std::optional(Order::ChannelsLast)
      : out.channels_first() && in.channels_first() ? std::optional(Order::ChannelsFirst)
                                                    : std::nullopt;
}

bool worth_a_product(Order order, const Geometry& g, int64_t least) {
  return kOnHost && is_pointwise(g) && (order == Order::ChannelsLast || g.out.space() >= least);
}

at::Tensor matrices(const Tensor& tensor, std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides) {
  Tensor view = tensor;
  view.SetFormat(Format::UNKNOWN);
  view.SetNdInfo(dims, strides);
  return alias(view);
}

// The filter as [outputs, inputs], or as [N, outputs, inputs] with a broadcast batch; `transposed` exchanges the last
// two dimensions.
at::Tensor filter(const Tensor& weight, const Geometry& g, bool transposed, int64_t batch = 0) {
  const int rows = transposed ? 1 : 0;
  const int columns = 1 - rows;
  const int64_t m = g.weight.dims[rows];
  const int64_t n = g.weight.dims[columns];
  const int64_t row = m > 1 ? g.weight.strides[rows] : n * std::max<int64_t>(g.weight.strides[columns], 1);
  const int64_t column = n > 1 ? g.weight.strides[columns] : 1;
  return batch > 0 ? matrices(weight, {batch, m, n}, {0, row, column}) : matrices(weight, {m, n}, {row, column});
}

// The tensor as [N * space, channels] or [N, channels, space].
at::Tensor pixels(const Tensor& tensor, const Layout& layout, Order order) {
  const int64_t channels = layout.dims[1];
  const int64_t space = layout.space();
  return order == Order::ChannelsLast
      ? matrices(tensor, {layout.dims[0] * space, channels}, {channels, 1})
      : matrices(tensor, {layout.dims[0], channels, space}, {channels * space, space, 1});
}

void multiply(
    const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias, const Geometry& g, Order order) {
  at::Tensor result = pixels(out, g.out, order);
  const at::Tensor image = pixels(in, g.in, order);
  const Outputs given(result);
  if (order == Order::ChannelsLast) {
    const at::Tensor factor = filter(weight, g, /*transposed=*/true);
    Access::present(bias) ? ops::addmm_out(result, alias(bias), image, factor) : ops::mm_out(result, image, factor);
  } else {
    const at::Tensor factor = filter(weight, g, /*transposed=*/false, g.in.dims[0]);
    if (Access::present(bias)) {
      const int64_t step = Access::strides(bias)[0];
      const at::Tensor rows = matrices(bias, {1, g.out.dims[1], 1}, {0, step, 0});
      ops::baddbmm_out(result, rows, factor, image);
    } else {
      ops::bmm_out(result, factor, image);
    }
  }
  given.keep();
}

void multiply_gradient(
    const Tensor& grad_in, const Tensor& grad_out, const Tensor& weight, const Geometry& g, Order order) {
  at::Tensor result = pixels(grad_in, g.in, order);
  const at::Tensor image = pixels(grad_out, g.out, order);
  const Outputs given(result);
  if (order == Order::ChannelsLast) {
    ops::mm_out(result, image, filter(weight, g, /*transposed=*/false));
  } else {
    ops::bmm_out(result, filter(weight, g, /*transposed=*/true, g.in.dims[0]), image);
  }
  given.keep();
}

// torch rearranges the images first, which takes longer than the product for large images. For channels-first formats,
// one product per image is added to the result, in FLOAT only, to avoid repeated rounding.
bool multiplies_filter_gradient(const Geometry& g, std::optional<Order> order, const Tensor& grad_weight) {
  constexpr int64_t large = 128;
  return kOnHost &&
      (order == Order::ChannelsLast ||
       (order == Order::ChannelsFirst && has_type(grad_weight, {Type::FLOAT}) && g.out.space() >= large));
}

void multiply_filter_gradient(
    const Tensor& grad_weight, const Tensor& in, const Tensor& grad_out, const Geometry& g, Order order) {
  at::Tensor result = filter(grad_weight, g, /*transposed=*/false);
  const Outputs given(result);
  const at::Tensor image = pixels(in, g.in, order);
  const at::Tensor gradient = pixels(grad_out, g.out, order);
  if (order == Order::ChannelsLast) {
    constexpr int64_t rows = 4096;
    const int64_t all = image.size(0);
    sum_in_groups(result, (all + rows - 1) / rows, 1, [&](at::Tensor& sum, int64_t n, bool) {
      const int64_t count = std::min(rows, all - n * rows);
      ops::mm_out(sum, gradient.narrow(0, n * rows, count).t(), image.narrow(0, n * rows, count));
    });
  } else {
    sum_in_groups(result, image.size(0), 256, [&](at::Tensor& sum, int64_t n, bool is_first) {
      const at::Tensor right = image.select(0, n).t();
      is_first ? ops::mm_out(sum, gradient.select(0, n), right)
               : ops::addmm_out(sum, sum, gradient.select(0, n), right);
    });
  }
  given.keep();
}

// ---- implementation

enum class Direction { Forward, BackwardData, BackwardFilter };

size_t key_of(const Geometry& g, Direction direction, const at::Tensor& place, bool biased) {
  Key key(static_cast<size_t>(direction) * 2 + biased);
  const auto add = [&key](int64_t value) { key.add(value); };
  add(static_cast<int64_t>(place.scalar_type()));
  add(g.groups);
  for (const Layout* layout : {&g.out, &g.in, &g.weight}) {
    std::for_each_n(layout->dims.begin(), layout->ndim, add);
    std::for_each_n(layout->strides.begin(), layout->ndim, add);
  }
  for (const std::vector<int64_t>* values : {&g.pad, &g.stride, &g.dilation}) {
    std::for_each(values->begin(), values->end(), add);
  }
  return key.value();
}

void store(at::Tensor& result, const at::Tensor& value) {
  if (!value.is_same(result)) {
    at::native::copy_(result, value);
  }
}

constexpr std::array<int64_t, 3> kNothing{0, 0, 0};

c10::IntArrayRef output_padding(const Geometry& g) { return {kNothing.data(), g.pad.size()}; }

at::Tensor convolve(const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias, const Geometry& g) {
  const std::optional<at::Tensor> addend = bias.defined() ? std::optional(bias) : std::nullopt;
  return at::convolution(
      in, weight, addend, g.stride, g.pad, g.dilation, /*transposed=*/false, output_padding(g), g.groups);
}

void activate(const Activation& activation, at::Tensor& out, const at::Tensor& in) {
  using M = Activation::Mode;
  switch (activation.mode) {
    case M::IDENTITY: store(out, in); return;
    case M::SIGMOID: ops::sigmoid_out(out, in); return;
    case M::RELU: ops::clamp_min_out(out, in, 0); return;
    case M::TANH: ops::tanh_out(out, in); return;
    case M::CLIPPED_RELU: ops::clamp_out(out, in, at::Scalar(0), at::Scalar(activation.alpha)); return;
    case M::ELU: ops::elu_out(out, in, activation.alpha, 1, 1); return;
    case M::HARD_SWISH: ops::hardswish_out(out, in); return;
    case M::SILU: ops::silu_out(out, in); return;
  }
}

double quantisation(const Tensor& tensor) { return has_type(tensor, {Type::QINT8}) ? Access::scale(tensor) : 1.0; }

// Computed in integers, stored in DOUBLE, which represents the values of an INT32 accumulator exactly; then scaled to
// the type of out.
void run_quantised(
    const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias, const Tensor& add,
    const Activation& activation, const Geometry& g) {
  at::Tensor value = convolve(
      alias_channels_second(in).to(at::kDouble), alias_channels_second(weight).to(at::kDouble), at::Tensor(), g);
  const auto add_bias = [&] {
    const at::Tensor values = alias(bias).to(at::kDouble);
    value.add_(g.in.ndim == 4 ? values.reshape({-1, 1, 1}) : values.reshape({-1, 1, 1, 1}));
  };
  const bool bias_counts = has_type(bias, {Type::INT32}); // in units of the accumulator
  if (Access::present(bias) && bias_counts) {
    add_bias();
  }
  if (!has_type(out, {Type::INT32})) {
    value.mul_(quantisation(in) * quantisation(weight));
  }
  if (Access::present(bias) && !bias_counts) {
    add_bias();
  }
  if (Access::present(add)) {
    value.add_(alias_channels_second(add).to(at::kDouble), quantisation(add));
  }
  activate(activation, value, value);
  const auto whole = [&value](double low, double high) { value = value.round().clamp(low, high); };
  if (is_quantised(out)) {
    value.div_(quantisation(out));
    whole(-128, 127);
  } else if (has_type(out, {Type::INT32})) {
    whole(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  }
  at::Tensor result = alias_channels_second(out);
  at::native::copy_(result, value);
}

void run_float(
    const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias, const Tensor& add,
    const Activation& activation, const Geometry& g) {
  at::Tensor result = alias_channels_second(out);
  const at::Tensor addend = alias_channels_second(add);
  const bool one_type = same_type(out, in) && (!Access::present(bias) || same_type(bias, in)) &&
      (!Access::present(add) || same_type(add, in));
  const Outputs given(result);
  const bool adds_itself = Access::present(add) && Access::address(add) == Access::address(out);
  if (const auto order = order_of(g.out, g.in); order && one_type && !adds_itself && worth_a_product(*order, g, 16)) {
    multiply(out, in, weight, bias, g, *order);
    if (addend.defined()) {
      ops::add_out(result, result, addend);
    }
    activate(activation, result, result);
    given.keep();
    return;
  }
  // Mixed types are computed in FLOAT, like the accumulators of the hardware.
  const auto operand = [one_type](const at::Tensor& tensor) {
    return one_type || !tensor.defined() ? tensor : tensor.to(at::kFloat);
  };
  const auto convolved = [&] {
    return convolve(
        operand(alias_channels_second(in)), operand(alias_channels_second(weight)), operand(alias(bias)), g);
  };
  if (!kOnHost && one_type && !addend.defined() &&
      convolve_into(
          result, alias_channels_second(in), alias_channels_second(weight), alias(bias), g.pad, g.stride, g.dilation,
          g.groups)) {
    activate(activation, result, result);
    given.keep();
    return;
  }
  const bool lends = one_type && !addend.defined();
  at::Tensor value =
      lends ? make_in(result, key_of(g, Direction::Forward, result, Access::present(bias)), convolved) : convolved();
  if (!one_type) {
    if (addend.defined()) {
      ops::add_out(value, value, operand(addend));
    }
    activate(activation, value, value);
    at::native::copy_(result, value);
  } else if (addend.defined()) {
    ops::add_out(result, value, addend);
    activate(activation, result, result);
  } else {
    activate(activation, result, value); // also copies to the caller's memory
  }
  given.keep();
}

// Gradients of mixed types are computed in FLOAT, like the accumulators of the hardware. HALF gradients too: on most
// processors torch has no fast kernel for them, and its slow one takes fifty times as long.
bool is_widened(const Tensor& result, const Tensor& operand) {
  return !same_type(result, operand) || (kOnHost && has_type(result, {Tensor::Type::HALF}));
}

// Returns a tensor with the shape, strides and type for the computation of a gradient.
at::Tensor like(const at::Tensor& result, bool widened) {
  return widened ? at::empty_like(result, result.options().dtype(at::kFloat)) : result;
}

void run_backward_data(const Tensor& grad_in, const Tensor& grad_out, const Tensor& weight, const Geometry& g) {
  const auto order = order_of(g.out, g.in);
  if (order && same_type(grad_in, grad_out) && worth_a_product(*order, g, 64)) {
    multiply_gradient(grad_in, grad_out, weight, g, *order);
    return;
  }
  at::Tensor result = alias_channels_second(grad_in);
  const bool widened = is_widened(grad_in, grad_out);
  at::Tensor gradient = alias_channels_second(grad_out);
  at::Tensor factor = alias_channels_second(weight);
  if (!kOnHost && !widened && input_gradient_into(result, gradient, factor, g.pad, g.stride, g.dilation, g.groups)) {
    return;
  }
  const auto make = [&] {
    return std::get<0>(at::convolution_backward(
        widened ? gradient.to(at::kFloat) : gradient, like(result, widened), widened ? factor.to(at::kFloat) : factor,
        std::nullopt, g.stride, g.pad, g.dilation, /*transposed=*/false, output_padding(g), g.groups,
        {true, false, false}));
  };
  store(result, widened ? make() : make_in(result, key_of(g, Direction::BackwardData, result, false), make));
}

void run_backward_filter(const Tensor& grad_weight, const Tensor& in, const Tensor& grad_out, const Geometry& g) {
  const auto order = order_of(g.out, g.in);
  if (same_type(grad_weight, in) && is_pointwise(g) && multiplies_filter_gradient(g, order, grad_weight)) {
    multiply_filter_gradient(grad_weight, in, grad_out, g, *order);
    return;
  }
  at::Tensor result = alias_channels_second(grad_weight);
  const bool widened = is_widened(grad_weight, in);
  at::Tensor gradient = alias_channels_second(grad_out);
  at::Tensor image = alias_channels_second(in);
  if (!kOnHost && !widened && filter_gradient_into(result, gradient, image, g.pad, g.stride, g.dilation, g.groups)) {
    return;
  }
  const auto make = [&] {
    return std::get<1>(at::convolution_backward(
        widened ? gradient.to(at::kFloat) : gradient, widened ? image.to(at::kFloat) : image, like(result, widened),
        std::nullopt, g.stride, g.pad, g.dilation, /*transposed=*/false, output_padding(g), g.groups,
        {false, true, false}));
  };
  store(result, widened ? make() : make_in(result, key_of(g, Direction::BackwardFilter, result, false), make));
}

// ---- algorithms

template <class Algorithm>
bool is_algorithm(Algorithm algorithm) {
  const int value = static_cast<int>(algorithm);
  return value >= 0 && value <= 3; // each direction has four
}

// The workspace of a real implementation: none for the implicit product and the direct algorithm, the patches of one
// image for the explicit product, and transformed filters for Winograd. Limited in size, because the workspace check
// writes and reads all of it.
template <class Algorithm>
size_t workspace_of(const Geometry& g, Algorithm algorithm) {
  constexpr int64_t most = 16384;
  const int64_t filters = g.weight.dims[0] * g.weight.dims[1] * 16;
  const int64_t patches = g.weight.dims[1] * g.weight.space() * g.out.space();
  const int64_t elements = algorithm == Algorithm::GEMM ? patches
      : algorithm == Algorithm::WINOGRAD_NONFUSED       ? filters
                                                        : 0;
  return static_cast<size_t>(std::min(elements * static_cast<int64_t>(sizeof(float)), most));
}

// Several workers sum the gradient of a filter over images.
size_t workspace_of(const Geometry& g, Convolution::AlgorithmBwdFilter algorithm) {
  return std::max(workspace_of<Convolution::AlgorithmBwdFilter>(g, algorithm), size_t{1024});
}

Geometry geometry_of(
    const std::vector<int>& pad, const std::vector<int>& stride, const std::vector<int>& dilation, int groups) {
  return {
      {pad.begin(), pad.end()}, {stride.begin(), stride.end()}, {dilation.begin(), dilation.end()}, groups, {}, {}, {}};
}

// The gradient of an NDHWC input requires a DHWCN filter.
bool accept_filter_format(Call& call, const Tensor& grad_in, const Tensor& weight) {
  return call.require(
      Access::format(grad_in) != Format::NDHWC || Access::format(weight) == Format::DHWCN, Status::NOT_SUPPORTED,
      "the gradient of an NDHWC input needs the filter as DHWCN");
}

} // namespace

Status Convolution::FusedActivationDesc::SetMode(Mode mode) {
  if (mode < Mode::IDENTITY || mode > Mode::SILU) {
    return Status::INVALID_PARAMETER;
  }
  mode_ = mode;
  return Status::SUCCESS;
}

Status Convolution::FusedActivationDesc::SetCoef(double alpha, double beta, double gamma) {
  alpha_ = alpha;
  beta_ = beta;
  gamma_ = gamma;
  return Status::SUCCESS;
}

Status Convolution::SetNdInfo(
    std::initializer_list<int> pad, std::initializer_list<int> stride, std::initializer_list<int> dilation) {
  if (pad.size() != stride.size() || pad.size() != dilation.size()) {
    return Status::INVALID_PARAMETER;
  }
  return SetNdInfo(static_cast<int>(pad.size()), pad.begin(), stride.begin(), dilation.begin());
}

Status Convolution::SetNdInfo(int count, const int* pad, const int* stride, const int* dilation) {
  const auto below = [count](const int* values, int least) {
    return std::any_of(values, values + count, [least](int value) { return value < least; });
  };
  if (count < 1 || pad == nullptr || stride == nullptr || dilation == nullptr || below(pad, 0) || below(stride, 1) ||
      below(dilation, 1)) {
    return Status::INVALID_PARAMETER;
  }
  pad_.assign(pad, pad + count);
  stride_.assign(stride, stride + count);
  dilation_.assign(dilation, dilation + count);
  return Status::SUCCESS;
}

Status Convolution::SetGroups(int groups) {
  if (groups < 1) {
    return Status::INVALID_PARAMETER;
  }
  groups_ = groups;
  return Status::SUCCESS;
}

Status Convolution::SetComputeMode(ComputeMode mode) {
  if (mode != ComputeMode::SCALAR && mode != ComputeMode::TENSOR) {
    return Status::INVALID_PARAMETER;
  }
  mode_ = mode;
  return Status::SUCCESS;
}

Status Convolution::GetRecommendForwardAlgorithm(
    Handle& handle, Algorithm& algorithm, const Tensor& out, const Tensor& in, const Tensor& weight) const {
  return call<"musa::dnn::Convolution::GetRecommendForwardAlgorithm">(handle, {&out, &in, &weight}, [&](Call& call) {
    Geometry g = geometry_of(pad_, stride_, dilation_, groups_);
    if (prepare(call, g, out, in, weight, out)) {
      algorithm = Algorithm::IMPLICIT_GEMM;
    }
    return call.status();
  });
}

Status Convolution::GetRecommendBackwardDataAlgorithm(
    Handle& handle, AlgorithmBwdData& algorithm, const Tensor& grad_in, const Tensor& grad_out,
    const Tensor& weight) const {
  return call<"musa::dnn::Convolution::GetRecommendBackwardDataAlgorithm">(
      handle, {&grad_in, &grad_out, &weight}, [&](Call& call) {
        Geometry g = geometry_of(pad_, stride_, dilation_, groups_);
        if (prepare(call, g, grad_out, grad_in, weight, grad_in)) {
          algorithm = AlgorithmBwdData::IMPLICIT_GEMM;
        }
        return call.status();
      });
}

Status Convolution::GetRecommendBackwardFilterAlgorithm(
    Handle& handle, AlgorithmBwdFilter& algorithm, const Tensor& grad_weight, const Tensor& in,
    const Tensor& grad_out) const {
  return call<"musa::dnn::Convolution::GetRecommendBackwardFilterAlgorithm">(
      handle, {&grad_weight, &in, &grad_out}, [&](Call& call) {
        Geometry g = geometry_of(pad_, stride_, dilation_, groups_);
        if (prepare(call, g, grad_out, in, grad_weight, grad_weight)) {
          algorithm = AlgorithmBwdFilter::IMPLICIT_GEMM;
        }
        return call.status();
      });
}

Status Convolution::GetForwardWorkspaceSize(
    Handle& handle, size_t& bytes, const Tensor& out, const Tensor& in, const Tensor& weight,
    Algorithm algorithm) const {
  return call<"musa::dnn::Convolution::GetForwardWorkspaceSize">(handle, {&out, &in, &weight}, [&](Call& call) {
    Geometry g = geometry_of(pad_, stride_, dilation_, groups_);
    if (call.require(is_algorithm(algorithm), Status::INVALID_PARAMETER, "unknown algorithm") &&
        prepare(call, g, out, in, weight, out)) {
      bytes = workspace_of(g, algorithm);
    }
    return call.status();
  });
}

Status Convolution::GetBackwardDataWorkspaceSize(
    Handle& handle, size_t& bytes, const Tensor& grad_in, const Tensor& grad_out, const Tensor& weight,
    AlgorithmBwdData algorithm) const {
  return call<"musa::dnn::Convolution::GetBackwardDataWorkspaceSize">(
      handle, {&grad_in, &grad_out, &weight}, [&](Call& call) {
        Geometry g = geometry_of(pad_, stride_, dilation_, groups_);
        if (call.require(is_algorithm(algorithm), Status::INVALID_PARAMETER, "unknown algorithm") &&
            prepare(call, g, grad_out, grad_in, weight, grad_in)) {
          bytes = workspace_of(g, algorithm);
        }
        return call.status();
      });
}

Status Convolution::GetBackwardFilterWorkspaceSize(
    Handle& handle, size_t& bytes, const Tensor& grad_weight, const Tensor& in, const Tensor& grad_out,
    AlgorithmBwdFilter algorithm) const {
  return call<"musa::dnn::Convolution::GetBackwardFilterWorkspaceSize">(
      handle, {&grad_weight, &in, &grad_out}, [&](Call& call) {
        Geometry g = geometry_of(pad_, stride_, dilation_, groups_);
        if (call.require(is_algorithm(algorithm), Status::INVALID_PARAMETER, "unknown algorithm") &&
            prepare(call, g, grad_out, in, grad_weight, grad_weight)) {
          bytes = workspace_of(g, algorithm);
        }
        return call.status();
      });
}

namespace {

Status forward(
    Call& call, Geometry g, const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias,
    const Tensor& add, const Convolution::FusedActivationDesc& desc, Convolution::Algorithm algorithm,
    const MemoryMaintainer& workspace) {
  if (!call.require(is_algorithm(algorithm), Status::INVALID_PARAMETER, "unknown algorithm") ||
      !prepare(call, g, out, in, weight, out)) {
    return call.status();
  }
  const bool quantised = is_quantised(in) && is_quantised(weight);
  if (quantised ? !call.require(
                      is_quantised(out) || is_float(out) || has_type(out, {Type::INT32}), Status::NOT_SUPPORTED,
                      "the types are not supported")
                : !accept_float(call, out, in, weight)) {
    return call.status();
  }
  if (Access::present(bias) &&
      (!call.require(
           Access::ndim(bias) == 1 && Access::dims(bias)[0] == g.out.dims[1], Status::INVALID_PARAMETER,
           "the bias does not have one element per channel") ||
       !call.require(
           is_float(bias) || (quantised && has_type(bias, {Type::INT32})), Status::NOT_SUPPORTED,
           "the type of the bias is not supported"))) {
    return call.status();
  }
  if (Access::present(add)) {
    const bool ranked = Access::ndim(add) == g.out.ndim && format_has_rank(add, g.out.ndim);
    if (!call.require(
            ranked && layout_of(add).dims == g.out.dims, Status::INVALID_PARAMETER,
            "the tensor to add and the output differ in shape") ||
        !call.require(
            is_float(add) || (quantised && is_quantised(add)), Status::NOT_SUPPORTED,
            "the type of the tensor to add is not supported")) {
      return call.status();
    }
  }
  const size_t bytes = workspace_of(g, algorithm);
  return call.enqueue(
      workspace, bytes,
      [g = std::move(g), quantised, activation = Activation(desc), out, in, weight, bias, add] {
        (quantised ? run_quantised : run_float)(out, in, weight, bias, add, activation, g);
      },
      /*optional=*/true);
}

} // namespace

Status Convolution::Run(
    Handle& handle, Tensor& out, const Tensor& in, const Tensor& weight, Algorithm algorithm,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Convolution::Run">(handle, {&out, &in, &weight}, [&](Call& call) {
    return forward(
        call, geometry_of(pad_, stride_, dilation_, groups_), out, in, weight, Tensor(), Tensor(),
        FusedActivationDesc(), algorithm, workspace);
  });
}

Status Convolution::RunFusion(
    Handle& handle, Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias, const Tensor& add,
    const FusedActivationDesc& activation, Algorithm algorithm, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Convolution::RunFusion">(handle, {&out, &in, &weight, &bias, &add}, [&](Call& call) {
    return forward(
        call, geometry_of(pad_, stride_, dilation_, groups_), out, in, weight, bias, add, activation, algorithm,
        workspace);
  });
}

Status Convolution::RunBwdData(
    Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& weight, AlgorithmBwdData algorithm,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Convolution::RunBwdData">(handle, {&grad_in, &grad_out, &weight}, [&](Call& call) {
    Geometry g = geometry_of(pad_, stride_, dilation_, groups_);
    if (!call.require(is_algorithm(algorithm), Status::INVALID_PARAMETER, "unknown algorithm") ||
        !prepare(call, g, grad_out, grad_in, weight, grad_in) || !accept_float(call, grad_in, grad_out, weight) ||
        !accept_filter_format(call, grad_in, weight)) {
      return call.status();
    }
    const size_t bytes = workspace_of(g, algorithm);
    return call.enqueue(
        workspace, bytes,
        [g = std::move(g), grad_in = grad_in, grad_out = grad_out, weight = weight] {
          run_backward_data(grad_in, grad_out, weight, g);
        },
        /*optional=*/true);
  });
}

Status Convolution::RunBwdFilter(
    Handle& handle, Tensor& grad_weight, const Tensor& in, const Tensor& grad_out, AlgorithmBwdFilter algorithm,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Convolution::RunBwdFilter">(handle, {&grad_weight, &in, &grad_out}, [&](Call& call) {
    Geometry g = geometry_of(pad_, stride_, dilation_, groups_);
    if (!call.require(is_algorithm(algorithm), Status::INVALID_PARAMETER, "unknown algorithm") ||
        !prepare(call, g, grad_out, in, grad_weight, grad_weight) || !accept_float(call, grad_weight, in, grad_out)) {
      return call.status();
    }
    const size_t bytes = workspace_of(g, algorithm);
    return call.enqueue(
        workspace, bytes,
        [g = std::move(g), grad_weight = grad_weight, in = in, grad_out = grad_out] {
          run_backward_filter(grad_weight, in, grad_out, g);
        },
        /*optional=*/true);
  });
}

} // namespace musa::dnn
