// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Losses that require the scores of the right classes to exceed the others by a margin.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/LossMulti.h>
#include <musa_runtime/argument_checks.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/optional.h"
#include "engines/rows.muh"
#include "kernels/MarginLoss.h"

namespace musa_ops_ported {
namespace {

struct Sizes {
  int64_t rows = 0, classes = 0;
};

void check_dtype(const at::Tensor& target) {
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
}

at::Tensor reduced(const at::Tensor& losses, int64_t reduction) {
  return reduction == at::Reduction::Mean ? losses.mean() : losses.sum();
}

// The gradient of the losses, or of their sum or mean.
void check_gradient(const char* op, const at::Tensor& grad_output, Sizes sizes) {
  musa_runtime::check_count(op, "grad_output", grad_output, grad_output.numel() == 1 ? 1 : sizes.rows);
}

void give(const at::Tensor& made, at::Tensor& out) {
  aten::resize_output(out, made.sizes());
  out.copy_(made);
}

// ---- one right class per row

struct Margin {
  bool squared;
  double width;
};

Margin margin_of(const at::Scalar& p, const at::Scalar& margin) {
  const auto power = p.toLong();
  TORCH_CHECK(power == 1 || power == 2, "only p == 1 and p == 2 supported, got p = ", power);
  return {power == 2, margin.toDouble()};
}

template <typename T>
void multi_margin_losses(
    Sizes sizes, const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight, Margin margin,
    const at::Tensor& losses) {
  using Real = at::opmath_type<T>;
  const T* const in = self.const_data_ptr<T>();
  const int64_t* const right = target.const_data_ptr<int64_t>();
  const T* const factor = data_or_null<T>(weight);
  T* const out = losses.mutable_data_ptr<T>();
  const Real width = static_cast<Real>(margin.width);
  each_row<Real>(sizes.rows, sizes.classes, [=] __device__(int64_t row, int64_t first, int64_t step, auto all) {
    const T* const x = in + row * sizes.classes;
    const int64_t t = right[row];
    CUDA_KERNEL_ASSERT(t >= 0 && t < sizes.classes && "a target is out of the range of classes");
    Real sum = 0;
    for (int64_t k = first; k < sizes.classes; k += step) {
      const Real over = width - static_cast<Real>(x[t]) + static_cast<Real>(x[k]);
      if (k != t && over > Real(0)) {
        sum += margin.squared ? over * over : over;
      }
    }
    sum = all(sum, Plus());
    if (first == 0) {
      const Real w = factor != nullptr ? static_cast<Real>(factor[t]) : Real(1);
      out[row] = static_cast<T>(w * sum / static_cast<Real>(sizes.classes));
    }
  });
}

template <typename T>
void multi_margin_gradients(
    Sizes sizes, const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const at::Tensor& weight, Margin margin, int64_t reduction, const at::Tensor& grad_input) {
  using Real = at::opmath_type<T>;
  const T* const g = grad_output.const_data_ptr<T>();
  const T* const in = self.const_data_ptr<T>();
  const int64_t* const right = target.const_data_ptr<int64_t>();
  const T* const factor = data_or_null<T>(weight);
  T* const out = grad_input.mutable_data_ptr<T>();
  const Real width = static_cast<Real>(margin.width);
  const bool each = grad_output.numel() > 1;
  const Real share = Real(1) / static_cast<Real>(sizes.classes * (reduction == at::Reduction::Mean ? sizes.rows : 1));
  each_row<Real>(sizes.rows, sizes.classes, [=] __device__(int64_t row, int64_t first, int64_t step, auto all) {
    const T* const x = in + row * sizes.classes;
    const int64_t t = right[row];
    CUDA_KERNEL_ASSERT(t >= 0 && t < sizes.classes && "a target is out of the range of classes");
    const Real w = factor != nullptr ? static_cast<Real>(factor[t]) : Real(1);
    const Real scale = share * w * static_cast<Real>(g[each ? row : 0]);
    Real sum = 0;
    for (int64_t k = first; k < sizes.classes; k += step) {
      const Real over = width - static_cast<Real>(x[t]) + static_cast<Real>(x[k]);
      if (k != t) {
        const Real slope = over > Real(0) ? scale * (margin.squared ? Real(2) * over : Real(1)) : Real(0);
        sum += slope;
        out[row * sizes.classes + k] = static_cast<T>(slope);
      }
    }
    sum = all(sum, Plus());
    if (first == 0) {
      out[row * sizes.classes + t] = static_cast<T>(-sum);
    }
  });
}

Sizes check_multi_margin(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight) {
  Sizes sizes;
  check_dtype(target);
  at::native::multi_margin_loss_shape_check(sizes.rows, sizes.classes, self.dim(), self, target, weight);
  return sizes;
}

// ---- several right classes per row

// The right classes of a row come first, terminated by -1 unless all classes are right.
template <typename T>
void mark_targets(Sizes sizes, const at::Tensor& target, const at::Tensor& is_target) {
  const int64_t* const right = target.const_data_ptr<int64_t>();
  T* const marks = is_target.mutable_data_ptr<T>();
  for_each(sizes.rows, [=] __device__(int64_t row) {
    const int64_t start = row * sizes.classes;
    for (int64_t i = 0; i < sizes.classes && right[start + i] >= 0; ++i) {
      CUDA_KERNEL_ASSERT(right[start + i] < sizes.classes && "a target is out of the range of classes");
      marks[start + right[start + i]] = T(1);
    }
  });
}

template <typename T>
void multilabel_losses(
    Sizes sizes, const at::Tensor& self, const at::Tensor& target, const at::Tensor& is_target,
    const at::Tensor& losses) {
  using Real = at::opmath_type<T>;
  const T* const in = self.const_data_ptr<T>();
  const int64_t* const right = target.const_data_ptr<int64_t>();
  const T* const marks = is_target.const_data_ptr<T>();
  T* const out = losses.mutable_data_ptr<T>();
  each_row<Real>(sizes.rows, sizes.classes, [=] __device__(int64_t row, int64_t first, int64_t step, auto all) {
    const int64_t start = row * sizes.classes;
    Real sum = 0;
    for (int64_t i = 0; i < sizes.classes && right[start + i] >= 0; ++i) {
      const Real least = static_cast<Real>(in[start + right[start + i]]) - Real(1);
      for (int64_t k = first; k < sizes.classes; k += step) {
        const Real over = static_cast<Real>(in[start + k]) - least;
        if (static_cast<Real>(marks[start + k]) == Real(0) && over > Real(0)) {
          sum += over;
        }
      }
    }
    sum = all(sum, Plus());
    if (first == 0) {
      out[row] = static_cast<T>(sum / static_cast<Real>(sizes.classes));
    }
  });
}

// Each element gathers its gradient from the pairs of a right and a wrong class whose scores are closer than the
// margin.
template <typename T>
void multilabel_gradients(
    Sizes sizes, const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const at::Tensor& is_target, int64_t reduction, const at::Tensor& grad_input) {
  using Real = at::opmath_type<T>;
  const T* const g = grad_output.const_data_ptr<T>();
  const T* const in = self.const_data_ptr<T>();
  const int64_t* const right = target.const_data_ptr<int64_t>();
  const T* const marks = is_target.const_data_ptr<T>();
  T* const out = grad_input.mutable_data_ptr<T>();
  const bool each = grad_output.numel() > 1;
  const Real share = Real(1) / static_cast<Real>(sizes.classes * (reduction == at::Reduction::Mean ? sizes.rows : 1));
  for_each(sizes.rows * sizes.classes, [=] __device__(int64_t i) {
    const int64_t row = i / sizes.classes, start = row * sizes.classes;
    const Real x = static_cast<Real>(in[i]);
    for (int64_t k = 0; k < sizes.classes && right[start + k] >= 0; ++k) {
      CUDA_KERNEL_ASSERT(right[start + k] < sizes.classes && "a target is out of the range of classes");
    }
    int64_t pairs = 0;
    if (static_cast<Real>(marks[i]) == Real(0)) {
      for (int64_t k = 0; k < sizes.classes && right[start + k] >= 0; ++k) {
        pairs += Real(1) - static_cast<Real>(in[start + right[start + k]]) + x > Real(0);
      }
    } else {
      int64_t times = 0;
      for (int64_t k = 0; k < sizes.classes && right[start + k] >= 0; ++k) {
        times += right[start + k] == i - start;
      }
      for (int64_t k = 0; k < sizes.classes; ++k) {
        const bool wrong = static_cast<Real>(marks[start + k]) == Real(0);
        pairs -= wrong && Real(1) - x + static_cast<Real>(in[start + k]) > Real(0) ? times : 0;
      }
    }
    out[i] = static_cast<T>(static_cast<Real>(pairs) * share * static_cast<Real>(g[each ? row : 0]));
  });
}

Sizes check_multilabel(const at::Tensor& self, const at::Tensor& target) {
  Sizes sizes;
  check_dtype(target);
  at::native::multilabel_margin_loss_shape_check(sizes.rows, sizes.classes, self.dim(), self, target);
  return sizes;
}

} // namespace

at::Tensor multi_margin_loss(
    const at::Tensor& self, const at::Tensor& target, const at::Scalar& p, const at::Scalar& margin,
    const std::optional<at::Tensor>& weight, int64_t reduction) {
  const Margin width = margin_of(p, margin);
  const Sizes sizes = check_multi_margin(self, target, weight);
  const at::Tensor losses = aten::empty({sizes.rows}, self.options());
  const at::Tensor in = self.contiguous();
  const at::Tensor right = target.contiguous();
  const at::Tensor factors = dense_as(weight, self.scalar_type());
  MUSA_DISPATCH(self.scalar_type(), "multi_margin_loss", (MUSA_FLOATING), {
    multi_margin_losses<scalar_t>(sizes, in, right, factors, width, losses);
  });
  if (reduction == at::Reduction::None) {
    return target.dim() > 0 ? losses : losses.squeeze(0);
  }
  return reduced(losses, reduction);
}

at::Tensor& multi_margin_loss_out(
    const at::Tensor& self, const at::Tensor& target, const at::Scalar& p, const at::Scalar& margin,
    const std::optional<at::Tensor>& weight, int64_t reduction, at::Tensor& out) {
  give(musa_ops_ported::multi_margin_loss(self, target, p, margin, weight, reduction), out);
  return out;
}

at::Tensor multi_margin_loss_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
    const at::Scalar& margin, const std::optional<at::Tensor>& weight, int64_t reduction) {
  const Margin width = margin_of(p, margin);
  const Sizes sizes = check_multi_margin(self, target, weight);
  check_gradient("multi_margin_loss_backward", grad_output, sizes);
  const at::Tensor grad_input = aten::empty_like(self, at::MemoryFormat::Contiguous);
  const at::Tensor g = grad_output.contiguous();
  const at::Tensor in = self.contiguous();
  const at::Tensor right = target.contiguous();
  const at::Tensor factors = dense_as(weight, self.scalar_type());
  if (self.numel() > 0) {
    MUSA_DISPATCH(self.scalar_type(), "multi_margin_loss_backward", (MUSA_FLOATING), {
      multi_margin_gradients<scalar_t>(sizes, g, in, right, factors, width, reduction, grad_input);
    });
  }
  return grad_input;
}

at::Tensor& multi_margin_loss_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
    const at::Scalar& margin, const std::optional<at::Tensor>& weight, int64_t reduction, at::Tensor& grad_input) {
  give(
      musa_ops_ported::multi_margin_loss_backward(grad_output, self, target, p, margin, weight, reduction), grad_input);
  return grad_input;
}

std::tuple<at::Tensor, at::Tensor> multilabel_margin_loss_forward(
    const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  const Sizes sizes = check_multilabel(self, target);
  const at::Tensor losses = aten::empty({sizes.rows}, self.options());
  const at::Tensor is_target = aten::empty(target.sizes(), self.options()).zero_();
  const at::Tensor in = self.contiguous();
  const at::Tensor right = target.contiguous();
  MUSA_DISPATCH(self.scalar_type(), "multilabel_margin_loss_forward", (MUSA_FLOATING), {
    mark_targets<scalar_t>(sizes, right, is_target);
    multilabel_losses<scalar_t>(sizes, in, right, is_target, losses);
  });
  if (reduction == at::Reduction::None) {
    return {target.dim() > 1 ? losses : losses.squeeze(0), is_target};
  }
  return {reduced(losses, reduction), is_target};
}

std::tuple<at::Tensor&, at::Tensor&> multilabel_margin_loss_forward_output(
    const at::Tensor& self, const at::Tensor& target, int64_t reduction, at::Tensor& output, at::Tensor& is_target) {
  const auto [loss, marks] = musa_ops_ported::multilabel_margin_loss_forward(self, target, reduction);
  give(loss, output);
  give(marks, is_target);
  return {output, is_target};
}

at::Tensor multilabel_margin_loss_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, int64_t reduction,
    const at::Tensor& is_target) {
  const Sizes sizes = check_multilabel(self, target);
  TORCH_CHECK(
      is_target.sizes() == target.sizes(), "inconsistent is_target size: ", is_target.sizes(),
      " for target of size: ", target.sizes());
  check_gradient("multilabel_margin_loss_backward", grad_output, sizes);
  const at::Tensor grad_input = aten::empty_like(self, at::MemoryFormat::Contiguous);
  const at::Tensor g = grad_output.contiguous();
  const at::Tensor in = self.contiguous();
  const at::Tensor right = target.contiguous();
  const at::Tensor marks = is_target.contiguous();
  if (self.numel() > 0) {
    MUSA_DISPATCH(self.scalar_type(), "multilabel_margin_loss_backward", (MUSA_FLOATING), {
      multilabel_gradients<scalar_t>(sizes, g, in, right, marks, reduction, grad_input);
    });
  }
  return grad_input;
}

at::Tensor& multilabel_margin_loss_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target, int64_t reduction,
    const at::Tensor& is_target, at::Tensor& grad_input) {
  give(musa_ops_ported::multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target), grad_input);
  return grad_input;
}

} // namespace musa_ops_ported
