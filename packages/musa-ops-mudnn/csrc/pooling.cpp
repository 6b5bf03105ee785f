// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Average and max pooling, forward and backward. 3-d average pooling is left to other providers, because no public code
// was found that uses muDNN for it.
#include <ATen/DimVector.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/adaptive_max_pool2d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool2d_meta.h>
#include <ATen/ops/avg_pool2d_backward_meta.h>
#include <ATen/ops/avg_pool2d_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d_with_indices_backward_meta.h>
#include <ATen/ops/max_pool2d_with_indices_meta.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

using PoolingMode = dnn::Pooling::Mode;

// Adds a batch dimension of size 1 to unbatched images.
at::Tensor batched(const at::Tensor& tensor, int64_t space) {
  return tensor.dim() == space + 1 ? tensor.unsqueeze(0) : tensor;
}

at::MemoryFormat format_of(const at::Tensor& image, int64_t space) {
  return image.dim() == space + 2 ? channels_format(image) : at::MemoryFormat::Contiguous;
}

// A dense tensor of the given format for the result: `out` itself if it is dense. finish() copies it to `out`
// otherwise.
class Target {
 public:
  Target(const at::Tensor& out, int64_t space, at::MemoryFormat format)
      : out_(batched(out, space)),
        dense_(out_.is_contiguous(format) ? out_ : at::empty(out_.sizes(), out_.options().memory_format(format))) {}

  const at::Tensor& tensor() const { return dense_; }
  void finish() const {
    if (!dense_.is_same(out_)) {
      convert(out_, dense_);
    }
  }

 private:
  at::Tensor out_;
  at::Tensor dense_;
};

// ---- calls

void run(
    const dnn::Pooling& op, int64_t space, const at::Tensor& self, const at::Tensor& out, const at::Tensor& indices) {
  const at::MemoryFormat format = format_of(self, space);
  const at::Tensor image = batched(self, space).contiguous(format);
  const Target target(out, space, format);
  const std::optional<Target> positions =
      indices.defined() ? std::optional<Target>(std::in_place, indices, space, format) : std::nullopt;
  const OnDevice on(out);
  dnn::Tensor result = describe_channels(target.tensor(), format);
  dnn::Tensor places = positions ? describe_channels(positions->tensor(), format) : dnn::Tensor();
  check(
      op.Run(on.handle(), result, describe_channels(image, format, kRead), places), "Pooling::Run",
      {&out, &self, &indices});
  target.finish();
  if (positions) {
    positions->finish();
  }
}

void run_backward(
    const dnn::Pooling& op, int64_t space, const at::Tensor& self, const at::Tensor& grad_out,
    const at::Tensor& indices, const at::Tensor& grad_in) {
  const at::MemoryFormat format = format_of(self, space);
  const at::Tensor gradient = batched(grad_out, space).contiguous(format);
  const at::Tensor places = indices.defined() ? batched(indices, space).contiguous(format) : indices;
  const Target target(grad_in, space, format);
  const OnDevice on(grad_in);
  dnn::Tensor result = describe_channels(target.tensor(), format);
  check(
      op.RunBwd(
          on.handle(), result, describe_channels(gradient, format, kRead),
          places.defined() ? describe_channels(places, format, kRead) : dnn::Tensor()),
      "Pooling::RunBwd", {&grad_in, &grad_out, &indices});
  target.finish();
}

dnn::Pooling of_mode(PoolingMode mode) {
  dnn::Pooling op;
  check(op.SetMode(mode), "Pooling::SetMode");
  return op;
}

// ---- sliding windows

struct Sliding {
  std::array<int, 3> kernel{}, pad{}, stride{}, dilation{};
  int space = 0;

  dnn::Pooling operation(PoolingMode mode) const {
    dnn::Pooling op = of_mode(mode);
    check(op.SetNdInfo(space, kernel.data(), pad.data(), stride.data(), dilation.data()), "Pooling::SetNdInfo");
    return op;
  }
};

// A single number applies to all dimensions. Returns false if the list has another length or a value is out of range.
bool fill(std::array<int, 3>& to, at::IntArrayRef from, int space, int64_t least) {
  if (from.size() != 1 && from.size() != static_cast<size_t>(space)) {
    return false;
  }
  for (int i = 0; i < space; ++i) {
    const int64_t value = from[from.size() == 1 ? 0 : static_cast<size_t>(i)];
    if (value < least || value > std::numeric_limits<int>::max()) {
      return false;
    }
    to[i] = static_cast<int>(value);
  }
  return true;
}

// Returns nullopt if the arguments are invalid; the next provider raises the error. The stride defaults to the kernel
// size.
std::optional<Sliding> sliding(
    int space, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation) {
  Sliding window;
  window.space = space;
  if (!fill(window.kernel, kernel, space, 1) || !fill(window.stride, stride.empty() ? kernel : stride, space, 1) ||
      !fill(window.pad, padding, space, 0) || !fill(window.dilation, dilation, space, 1)) {
    return std::nullopt;
  }
  for (int i = 0; i < space; ++i) {
    const int64_t reach = (static_cast<int64_t>(window.kernel[i]) - 1) * window.dilation[i] + 1;
    if (window.pad[i] > reach / 2) {
      return std::nullopt;
    }
  }
  return window;
}

// Returns the output's shape, or nullopt if it has no elements.
std::optional<at::DimVector> pooled_sizes(const at::Tensor& self, const Sliding& window, bool ceil_mode) {
  if (self.dim() != window.space + 1 && self.dim() != window.space + 2) {
    return std::nullopt;
  }
  at::DimVector sizes(self.sizes());
  for (int i = 0; i < window.space; ++i) {
    int64_t& size = sizes[sizes.size() - static_cast<size_t>(window.space - i)];
    size = at::native::pooling_output_shape_pad_lr<int64_t>(
        size, window.kernel[i], window.pad[i], window.pad[i], window.stride[i], window.dilation[i], ceil_mode);
    if (size < 1) {
      return std::nullopt;
    }
  }
  return sizes;
}

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

bool takes_indices(const at::Tensor& indices, const at::Tensor& pooled) {
  return serves<one(at::kLong)>(indices) && indices.device() == pooled.device() && indices.sizes() == pooled.sizes();
}

// The gradients of overlapping windows are added in an undocumented order.
bool takes_gradient(const at::Tensor& grad, const at::Tensor& self) {
  return serves<float_types>(grad, self) && same_kind(grad, self) && !must_repeat();
}

// ---- average pooling

constexpr std::array<int64_t, 1> kNoDilation{1};

dnn::Pooling mean_operation(
    at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding, bool counts_pad,
    std::optional<int64_t> divisor) {
  const auto window = sliding(2, kernel, stride, padding, kNoDilation);
  TORCH_INTERNAL_ASSERT(window.has_value());
  dnn::Pooling op =
      window->operation(counts_pad ? PoolingMode::AVGPOOL_COUNT_PAD : PoolingMode::AVGPOOL_COUNT_WITHOUT_PAD);
  if (divisor.has_value()) {
    check(op.SetDivisor(static_cast<int>(*divisor)), "Pooling::SetDivisor");
  }
  return op;
}

void avg_pool2d(
    const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding, bool /*ceil*/,
    bool counts_pad, std::optional<int64_t> divisor, const at::Tensor& out) {
  run(mean_operation(kernel, stride, padding, counts_pad, divisor), 2, self, out, /*indices=*/{});
}

bool avg_pool2d_served(
    const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding, bool ceil_mode,
    bool /*counts_pad*/, std::optional<int64_t> divisor) {
  if (!serves<float_types>(self) ||
      (divisor.has_value() && (*divisor < 1 || *divisor > std::numeric_limits<int>::max()))) {
    return false;
  }
  const auto window = sliding(2, kernel, stride, padding, kNoDilation);
  return window.has_value() && pooled_sizes(self, *window, ceil_mode).has_value();
}

void avg_pool2d_backward(
    const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, bool /*ceil*/, bool counts_pad, std::optional<int64_t> divisor,
    const at::Tensor& grad_in) {
  run_backward(mean_operation(kernel, stride, padding, counts_pad, divisor), 2, self, grad, /*indices=*/{}, grad_in);
}

bool avg_pool2d_backward_served(
    const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, bool ceil_mode, bool counts_pad, std::optional<int64_t> divisor) {
  if (!takes_gradient(grad, self) ||
      !avg_pool2d_served(self, kernel, stride, padding, ceil_mode, counts_pad, divisor)) {
    return false;
  }
  const auto window = sliding(2, kernel, stride, padding, kNoDilation);
  return grad.sizes() == at::IntArrayRef(*pooled_sizes(self, *window, ceil_mode));
}

// ---- max pooling

dnn::Pooling maximum_operation(
    int space, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation) {
  const auto window = sliding(space, kernel, stride, padding, dilation);
  TORCH_INTERNAL_ASSERT(window.has_value());
  return window->operation(PoolingMode::MAXPOOL);
}

template <int space>
bool max_pool_served(
    const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool ceil_mode) {
  const auto window = sliding(space, kernel, stride, padding, dilation);
  return serves<float_types>(self) && window.has_value() && pooled_sizes(self, *window, ceil_mode).has_value();
}

template <int space>
bool max_pool_backward_served(
    const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices) {
  const auto window = sliding(space, kernel, stride, padding, dilation);
  if (!window.has_value() || !takes_gradient(grad, self) || !takes_indices(indices, grad)) {
    return false;
  }
  const auto sizes = pooled_sizes(self, *window, ceil_mode);
  return sizes.has_value() && grad.sizes() == at::IntArrayRef(*sizes);
}

void max_pool2d(
    const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool /*ceil*/, const at::Tensor& out, const at::Tensor& indices) {
  run(maximum_operation(2, kernel, stride, padding, dilation), 2, self, out, indices);
}

void max_pool2d_backward(
    const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool /*ceil*/, const at::Tensor& indices,
    const at::Tensor& grad_in) {
  run_backward(maximum_operation(2, kernel, stride, padding, dilation), 2, self, grad, indices, grad_in);
}

at::Tensor empty_image(at::IntArrayRef sizes, const at::Tensor& like, int64_t space, at::ScalarType dtype) {
  return at::empty(sizes, like.options().dtype(dtype).memory_format(format_of(like, space)));
}

// Resizes `out` as torch's operators do: if the shape changes, it takes the input's memory format.
void resize_like(const at::Tensor& out, at::IntArrayRef sizes, const at::Tensor& input, int64_t space) {
  if (at::native::resize_output(out, sizes)) {
    out.unsafeGetTensorImpl()->empty_tensor_restride(format_of(input, space));
  }
}

bool writable_as(const at::Tensor& out, const at::Tensor& self, at::ScalarType dtype) {
  return writable(out) && out.scalar_type() == dtype && out.device() == self.device();
}

std::tuple<at::Tensor&, at::Tensor&> max_pool3d_out(
    const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool ceil_mode, at::Tensor& out, at::Tensor& indices) {
  const auto window = sliding(3, kernel, stride, padding, dilation);
  const auto sizes = pooled_sizes(self, *window, ceil_mode);
  resize_like(out, *sizes, self, 3);
  resize_like(indices, *sizes, self, 3);
  run(window->operation(PoolingMode::MAXPOOL), 3, self, out, indices);
  return {out, indices};
}

bool max_pool3d_out_served(
    const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool ceil_mode, at::Tensor& out, at::Tensor& indices) {
  return max_pool_served<3>(self, kernel, stride, padding, dilation, ceil_mode) &&
      writable_as(out, self, self.scalar_type()) && writable_as(indices, self, at::kLong);
}

std::tuple<at::Tensor, at::Tensor> max_pool3d(
    const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool ceil_mode) {
  const auto window = sliding(3, kernel, stride, padding, dilation);
  const auto sizes = pooled_sizes(self, *window, ceil_mode);
  at::Tensor out = empty_image(*sizes, self, 3, self.scalar_type());
  at::Tensor indices = empty_image(*sizes, self, 3, at::kLong);
  run(window->operation(PoolingMode::MAXPOOL), 3, self, out, indices);
  return {std::move(out), std::move(indices)};
}

at::Tensor& max_pool3d_backward_out(
    const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool /*ceil*/, const at::Tensor& indices, at::Tensor& grad_in) {
  resize_like(grad_in, self.sizes(), self, 3);
  run_backward(maximum_operation(3, kernel, stride, padding, dilation), 3, self, grad, indices, grad_in);
  return grad_in;
}

bool max_pool3d_backward_out_served(
    const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices, at::Tensor& grad_in) {
  return max_pool_backward_served<3>(grad, self, kernel, stride, padding, dilation, ceil_mode, indices) &&
      writable_as(grad_in, self, self.scalar_type());
}

at::Tensor max_pool3d_backward(
    const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices) {
  at::Tensor grad_in = empty_image(self.sizes(), self, 3, self.scalar_type());
  return max_pool3d_backward_out(grad, self, kernel, stride, padding, dilation, ceil_mode, indices, grad_in);
}

// ---- adaptive pooling: windows are chosen to match the output's size

bool is_image(const at::Tensor& self) { return self.dim() == 3 || self.dim() == 4; }

bool adaptive_served(const at::Tensor& self, at::IntArrayRef size) {
  return serves<float_types>(self) && is_image(self) && size.size() == 2 && size[0] > 0 && size[1] > 0;
}

bool adaptive_backward_served(const at::Tensor& grad, const at::Tensor& self) {
  return takes_gradient(grad, self) && is_image(self) && grad.dim() == self.dim() &&
      grad.sizes().slice(0, static_cast<size_t>(grad.dim()) - 2) ==
      self.sizes().slice(0, static_cast<size_t>(self.dim()) - 2);
}

at::DimVector adaptive_sizes(const at::Tensor& self, at::IntArrayRef size) {
  at::DimVector sizes(self.sizes());
  std::copy(size.begin(), size.end(), sizes.end() - 2);
  return sizes;
}

at::Tensor& adaptive_avg_pool2d_out(const at::Tensor& self, at::IntArrayRef size, at::Tensor& out) {
  resize_like(out, adaptive_sizes(self, size), self, 2);
  run(of_mode(PoolingMode::ADAPTIVE_AVGPOOL), 2, self, out, /*indices=*/{});
  return out;
}

bool adaptive_avg_pool2d_out_served(const at::Tensor& self, at::IntArrayRef size, at::Tensor& out) {
  return adaptive_served(self, size) && writable_as(out, self, self.scalar_type());
}

at::Tensor adaptive_avg_pool2d(const at::Tensor& self, at::IntArrayRef size) {
  at::Tensor out = empty_image(adaptive_sizes(self, size), self, 2, self.scalar_type());
  run(of_mode(PoolingMode::ADAPTIVE_AVGPOOL), 2, self, out, /*indices=*/{});
  return out;
}

at::Tensor adaptive_avg_pool2d_backward(const at::Tensor& grad, const at::Tensor& self) {
  at::Tensor grad_in = empty_image(self.sizes(), self, 2, self.scalar_type());
  run_backward(of_mode(PoolingMode::ADAPTIVE_AVGPOOL), 2, self, grad, /*indices=*/{}, grad_in);
  return grad_in;
}

void adaptive_max_pool2d(
    const at::Tensor& self, at::IntArrayRef /*size*/, const at::Tensor& out, const at::Tensor& indices) {
  run(of_mode(PoolingMode::ADAPTIVE_MAXPOOL), 2, self, out, indices);
}

void adaptive_max_pool2d_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& indices, const at::Tensor& grad_in) {
  run_backward(of_mode(PoolingMode::ADAPTIVE_MAXPOOL), 2, self, grad, indices, grad_in);
}

bool adaptive_max_pool2d_backward_served(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& indices) {
  return adaptive_backward_served(grad, self) && takes_indices(indices, grad);
}

} // namespace

void declare_pooling(OpPack& pack) {
  structured<at::meta::structured_avg_pool2d, avg_pool2d, avg_pool2d_served>(
      pack, {"aten::avg_pool2d", "aten::avg_pool2d.out"});
  structured<at::meta::structured_avg_pool2d_backward, avg_pool2d_backward, avg_pool2d_backward_served>(
      pack, {"aten::avg_pool2d_backward", "aten::avg_pool2d_backward.grad_input"});
  structured_pair<at::meta::structured_max_pool2d_with_indices, max_pool2d, max_pool_served<2>>(
      pack, {"aten::max_pool2d_with_indices", "aten::max_pool2d_with_indices.out"});
  structured<at::meta::structured_max_pool2d_with_indices_backward, max_pool2d_backward, max_pool_backward_served<2>>(
      pack, {"aten::max_pool2d_with_indices_backward", "aten::max_pool2d_with_indices_backward.grad_input"});
  structured_pair<at::meta::structured_adaptive_max_pool2d, adaptive_max_pool2d, adaptive_served>(
      pack, {"aten::adaptive_max_pool2d", "aten::adaptive_max_pool2d.out"});
  structured<
      at::meta::structured_adaptive_max_pool2d_backward, adaptive_max_pool2d_backward,
      adaptive_max_pool2d_backward_served>(
      pack, {"aten::adaptive_max_pool2d_backward", "aten::adaptive_max_pool2d_backward.grad_input"});

  pack.impl("aten::max_pool3d_with_indices", TORCH_FN(max_pool3d), TORCH_FN(max_pool_served<3>));
  pack.impl("aten::max_pool3d_with_indices.out", TORCH_FN(max_pool3d_out), TORCH_FN(max_pool3d_out_served));
  pack.impl(
      "aten::max_pool3d_with_indices_backward", TORCH_FN(max_pool3d_backward), TORCH_FN(max_pool_backward_served<3>));
  pack.impl(
      "aten::max_pool3d_with_indices_backward.grad_input", TORCH_FN(max_pool3d_backward_out),
      TORCH_FN(max_pool3d_backward_out_served));
  pack.impl("aten::_adaptive_avg_pool2d", TORCH_FN(adaptive_avg_pool2d), TORCH_FN(adaptive_served));
  pack.impl(
      "aten::adaptive_avg_pool2d.out", TORCH_FN(adaptive_avg_pool2d_out), TORCH_FN(adaptive_avg_pool2d_out_served));
  pack.impl(
      "aten::_adaptive_avg_pool2d_backward", TORCH_FN(adaptive_avg_pool2d_backward),
      TORCH_FN(adaptive_backward_served));
}

} // namespace musa_ops_mudnn
