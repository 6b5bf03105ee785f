// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Negative log likelihood for inputs (N, C), or (N, C, H, W) with one class per position of a plane.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "engines/aten.h"
#include "engines/contiguous.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/optional.h"
#include "engines/rows.muh"
#include "kernels/NLLLoss.h"

namespace musa_ops_ported {
namespace {

// Inputs as (batch, class, place) with strides in elements; targets are contiguous (batch, place).
struct Layout {
  int64_t batch, classes, places;
  int64_t batch_step, class_step, place_step;

  // The places of a plane must have a single stride (dense_planes).
  explicit Layout(const at::Tensor& input)
      : batch(input.dim() > 1 ? input.size(0) : 1),
        classes(input.size(input.dim() > 1 ? 1 : 0)),
        places(input.dim() == 4 ? input.size(2) * input.size(3) : 1),
        batch_step(input.dim() > 1 ? input.stride(0) : 0),
        class_step(input.stride(input.dim() > 1 ? 1 : 0)),
        place_step(input.dim() == 4 ? input.stride(3) : 0) {}

  int64_t count() const { return batch * places; }
  C10_HOST_DEVICE int64_t start(int64_t i) const { return i / places * batch_step + i % places * place_step; }
};

at::Tensor dense_planes(const at::Tensor& input) {
  const bool one_step = input.dim() != 4 || input.stride(2) == input.stride(3) * input.size(3);
  return one_step ? input : input.contiguous();
}

void check_dtype(const at::Tensor& target) {
  TORCH_CHECK(
      target.scalar_type() == at::kLong || target.scalar_type() == at::kByte, "expected scalar type Long but found ",
      target.scalar_type());
}

struct Targets {
  const int64_t* of;
  int64_t ignored, classes;

  Targets(const at::Tensor& target, int64_t ignore_index, int64_t count)
      : of(target.const_data_ptr<int64_t>()), ignored(ignore_index), classes(count) {}

  // The target class, or -1 if it is ignored.
  __device__ int64_t operator()(int64_t i) const {
    const int64_t target = of[i];
    if (target == ignored) {
      return -1;
    }
    CUDA_KERNEL_ASSERT(target >= 0 && target < classes && "a target is out of the range of classes");
    return target;
  }
};

template <typename T>
void losses(
    const Layout& layout, const at::Tensor& self, const Targets& target, const at::Tensor& weight,
    const at::Tensor& out) {
  using Real = at::opmath_type<T>;
  const T* const in = self.const_data_ptr<T>();
  const T* const factor = data_or_null<T>(weight);
  T* const to = out.mutable_data_ptr<T>();
  for_each(layout.count(), [=] __device__(int64_t i) {
    const int64_t t = target(i);
    Real loss = 0;
    if (t >= 0) {
      const Real w = factor != nullptr ? static_cast<Real>(factor[t]) : Real(1);
      loss = -w * static_cast<Real>(in[layout.start(i) + t * layout.class_step]);
    }
    to[i] = static_cast<T>(loss);
  });
}

// Total loss and total weight. Many targets are first summed in parts.
template <typename T>
void total_loss(
    const Layout& layout, const at::Tensor& self, const Targets& target, const at::Tensor& weight, bool mean,
    const at::Tensor& out, const at::Tensor& total_weight) {
  using Real = at::opmath_type<T>;
  using Pair = Sums<Real, 2>;
  const T* const in = self.const_data_ptr<T>();
  const T* const factor = data_or_null<T>(weight);
  const int64_t count = layout.count();
  const int64_t parts = std::clamp<int64_t>(count / 8192, 1, 512);
  const at::Tensor partial = aten::empty({parts, 2}, self.options().dtype(c10::CppTypeToScalarType<Real>::value));
  Pair* const sums = reinterpret_cast<Pair*>(partial.mutable_data_ptr<Real>());
  const int64_t longest = (count + parts - 1) / parts;
  each_row<Pair>(parts, longest, [=] __device__(int64_t part, int64_t first, int64_t step, auto all) {
    const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
    const Pair sum = sum_over<Pair>(begin + first, end, step, all, [&](int64_t i) {
      const int64_t t = target(i);
      if (t < 0) {
        return Pair{};
      }
      const Real w = factor != nullptr ? static_cast<Real>(factor[t]) : Real(1);
      return Pair{{-w * static_cast<Real>(in[layout.start(i) + t * layout.class_step]), w}};
    });
    if (first == 0) {
      sums[part] = sum;
    }
  });
  T* const loss = out.mutable_data_ptr<T>();
  T* const whole = total_weight.mutable_data_ptr<T>();
  for_each(1, [=] __device__(int64_t) {
    Pair sum{};
    for (int64_t part = 0; part < parts; ++part) {
      sum = sum + sums[part];
    }
    *loss = static_cast<T>(mean ? sum.at[0] / sum.at[1] : sum.at[0]);
    *whole = static_cast<T>(sum.at[1]);
  });
}

void forward(
    const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight, int64_t reduction, int64_t ignore_index,
    const at::Tensor& output, const at::Tensor& total_weight) {
  check_dtype(target);
  const at::Tensor in = dense_planes(self);
  const at::Tensor classes = dense_as(target, at::kLong);
  const at::Tensor factors = weight.defined() ? weight.contiguous() : weight;
  const Layout layout(in);
  TORCH_CHECK_INDEX(
      layout.classes > 0 || layout.count() == 0 || target.eq(ignore_index).all().item<bool>(),
      "Target is out of bounds: there are no classes");
  const Targets targets(classes, ignore_index, layout.classes);
  const bool each = reduction == at::Reduction::None && self.dim() > 1;
  write_contiguous(output, [&](const at::Tensor& out) {
    MUSA_DISPATCH(in.scalar_type(), "nll_loss_forward", (MUSA_FLOATING), {
      if (each) {
        losses<scalar_t>(layout, in, targets, factors, out);
        total_weight.zero_();
      } else {
        total_loss<scalar_t>(layout, in, targets, factors, reduction == at::Reduction::Mean, out, total_weight);
      }
    });
  });
}

template <typename T>
void gradient_of(
    const Layout& layout, const at::Tensor& grad_output, const Targets& target, const at::Tensor& weight, bool each,
    bool mean, const at::Tensor& total_weight, const at::Tensor& grad_input) {
  using Real = at::opmath_type<T>;
  const T* const g = grad_output.const_data_ptr<T>();
  const T* const factor = data_or_null<T>(weight);
  const T* const whole = mean ? total_weight.const_data_ptr<T>() : nullptr;
  T* const to = grad_input.mutable_data_ptr<T>();
  for_each(layout.count(), [=] __device__(int64_t i) {
    const int64_t t = target(i);
    if (t >= 0) {
      const Real w = factor != nullptr ? static_cast<Real>(factor[t]) : Real(1);
      const Real gradient = -w * static_cast<Real>(g[each ? i : 0]);
      to[layout.start(i) + t * layout.class_step] =
          static_cast<T>(whole != nullptr ? gradient / static_cast<Real>(*whole) : gradient);
    }
  });
}

void backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight,
    int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight, const at::Tensor& grad_input) {
  check_dtype(target);
  const at::Tensor made = dense_planes(grad_input);
  made.zero_();
  const at::Tensor g = grad_output.contiguous();
  const at::Tensor classes = dense_as(target, at::kLong);
  const at::Tensor factors = weight.defined() ? weight.contiguous() : weight;
  const Layout layout(made);
  const Targets targets(classes, ignore_index, layout.classes);
  const bool each = reduction == at::Reduction::None && self.dim() > 1;
  MUSA_DISPATCH(self.scalar_type(), "nll_loss_backward", (MUSA_FLOATING), {
    gradient_of<scalar_t>(layout, g, targets, factors, each, reduction == at::Reduction::Mean, total_weight, made);
  });
  if (!made.is_same(grad_input)) {
    grad_input.copy_(made);
  }
}

void check_planes(const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight) {
  TORCH_CHECK(
      target.dim() == 3,
      "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TORCH_CHECK(
      self.dim() == 4,
      "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  TORCH_CHECK(
      !weight.defined() || weight.numel() == self.size(1),
      "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(
      self.size(0) == target.size(0) && self.size(2) == target.size(1) && self.size(3) == target.size(2),
      "input and target batch or spatial sizes don't match: target ", target.sizes(), ", input ", self.sizes());
}

} // namespace

void nll_loss_forward(
    const at::Tensor& self, const at::Tensor& target, at::OptionalTensorRef weight, int64_t reduction,
    int64_t ignore_index, const at::Tensor& output, const at::Tensor& total_weight) {
  forward(self, target, weight.has_value() ? *weight : at::Tensor(), reduction, ignore_index, output, total_weight);
}

void nll_loss_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, at::OptionalTensorRef weight,
    int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight, const at::Tensor& grad_input) {
  backward(
      grad_output, self, target, weight.has_value() ? *weight : at::Tensor(), reduction, ignore_index, total_weight,
      grad_input);
}

std::tuple<at::Tensor&, at::Tensor&> nll_loss2d_forward_output(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    int64_t ignore_index, at::Tensor& output, at::Tensor& total_weight) {
  const at::Tensor factors = or_undefined(weight);
  check_planes(self, target, factors);
  aten::resize_output(output, reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef());
  aten::resize_output(total_weight, {});
  forward(self, target, factors, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

std::tuple<at::Tensor, at::Tensor> nll_loss2d_forward(
    const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
    int64_t ignore_index) {
  at::Tensor output = aten::empty({0}, self.options());
  at::Tensor total_weight = aten::empty({}, self.options());
  musa_ops_ported::nll_loss2d_forward_output(self, target, weight, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

at::Tensor& nll_loss2d_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight,
    at::Tensor& grad_input) {
  const at::Tensor factors = or_undefined(weight);
  check_planes(self, target, factors);
  if (reduction == at::Reduction::None) {
    TORCH_CHECK(
        grad_output.sizes() == target.sizes(), "expected a gradient of size ", target.sizes(), ", got ",
        grad_output.sizes());
  } else {
    TORCH_CHECK(
        grad_output.dim() <= 1 && grad_output.numel() == 1, "expected a single element grad_output tensor, but got ",
        grad_output.sizes());
  }
  TORCH_CHECK(
      total_weight.numel() == 1, "expected total_weight to be a single element tensor, got: ", total_weight.sizes(),
      " (", total_weight.numel(), " elements)");
  aten::resize_output(grad_input, self.sizes());
  backward(grad_output, self, target, factors, reduction, ignore_index, total_weight, grad_input);
  return grad_input;
}

at::Tensor nll_loss2d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight) {
  at::Tensor grad_input = aten::empty_like(self);
  musa_ops_ported::nll_loss2d_backward_grad_input(
      grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input);
  return grad_input;
}

} // namespace musa_ops_ported
