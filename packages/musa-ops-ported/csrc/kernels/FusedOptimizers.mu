// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A step of an optimizer over all parameters in one launch. The formulas are those of the documentation of torch.optim's Adam,
// AdamW, SGD and Adagrad; states are computed in float for half types.
#include <ATen/core/Tensor.h>

#include <cmath>

#include "engines/dispatch.h"
#include "engines/tensor_lists.muh"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

// What a GradScaler asks for, and a learning rate that may lie on the device. Pointers are null where there is nothing.
struct Common {
  const float* grad_scale;
  const float* found_inf;
  const float* lr_tensor;
  double lr;
  double weight_decay;
  bool maximize;

  __device__ bool skipped() const { return found_inf != nullptr && *found_inf == 1.0f; }
  __device__ double rate() const { return lr_tensor != nullptr ? static_cast<double>(*lr_tensor) : lr; }

};

// What all elements of a gradient share, loaded once. F::Update has it as its base.
template <typename T>
struct Gradients {
  using op_t = at::opmath_type<T>;
  bool skipped, scaled, maximize;
  op_t scale, decay;

  __device__ explicit Gradients(const Common& common)
      : skipped(common.skipped()),
        scaled(common.grad_scale != nullptr),
        maximize(common.maximize),
        scale(scaled ? static_cast<op_t>(*common.grad_scale) : op_t(1)),
        decay(static_cast<op_t>(common.weight_decay)) {}

  // Unscales the gradient of an element; returns the direction to descend.
  __device__ C10_ALWAYS_INLINE op_t descent(op_t& gradient) const {
    if (scaled) {
      gradient /= scale;
    }
    return maximize ? -gradient : gradient;
  }
};

const float* scalar_on_device(const std::optional<at::Tensor>& tensor, const at::Tensor& like, const char* name) {
  if (!tensor.has_value() || !tensor->defined()) {
    return nullptr;
  }
  TORCH_CHECK(
      tensor->device() == like.device() && tensor->scalar_type() == at::kFloat && tensor->numel() == 1, name,
      " must be a float32 tensor of one element on ", like.device(), ", but is ", tensor->scalar_type(), " of ",
      tensor->numel(), " on ", tensor->device());
  return tensor->const_data_ptr<float>();
}

Common common(
    at::TensorList self, double lr, double weight_decay, bool maximize, const std::optional<at::Tensor>& grad_scale,
    const std::optional<at::Tensor>& found_inf) {
  return {
      scalar_on_device(grad_scale, self[0], "grad_scale"), scalar_on_device(found_inf, self[0], "found_inf"), nullptr, lr,
      weight_decay, maximize};
}

// The learning rate of a tensor: read by the kernel where it is on the device, else by the host.
void take_rate(Common& common, const at::Tensor& lr, const at::Tensor& like) {
  if (lr.device().is_cpu()) {
    common.lr = lr.item<double>();
  } else {
    common.lr_tensor = scalar_on_device(lr, like, "lr");
  }
}

template <typename T>
struct Adam {
  using op_t = at::opmath_type<T>;
  Common common;
  double beta1, beta2, eps;
  bool decoupled, amsgrad; // weight decay apart from the gradient, as AdamW's

  // Elements of (parameter, gradient, exp_avg, exp_avg_sq, max_exp_avg_sq).
  struct Update : Gradients<T> {
    static constexpr int kLists = 5;
    bool decoupled, amsgrad;
    op_t beta1, beta2, eps, rate, step_size, root_of_correction;

    __device__ bool reads(int list) const { return list != 4 || amsgrad; }
    __device__ bool writes(int list) const { return list == 1 ? this->scaled : reads(list); }
    __device__ C10_ALWAYS_INLINE void operator()(op_t (&of)[kLists]) const {
      op_t p = of[0];
      op_t g = this->descent(of[1]);
      if (this->decay != 0) {
        if (decoupled) {
          p -= rate * this->decay * p;
        } else {
          g += p * this->decay;
        }
      }
      of[2] = beta1 * of[2] + (1 - beta1) * g;
      of[3] = beta2 * of[3] + (1 - beta2) * g * g;
      op_t largest = of[3];
      if (amsgrad) {
        largest = of[4] > largest ? of[4] : largest;
        of[4] = largest;
      }
      of[0] = p - step_size * of[2] / (std::sqrt(largest) / root_of_correction + eps);
    }
  };

  __device__ Update of(void* const* pointers) const {
    const double step = static_cast<double>(*static_cast<const float*>(pointers[5]));
    const double rate = common.rate();
    return {
        Gradients<T>(common),
        decoupled,
        amsgrad,
        static_cast<op_t>(beta1),
        static_cast<op_t>(beta2),
        static_cast<op_t>(eps),
        static_cast<op_t>(rate),
        static_cast<op_t>(rate / (1 - std::pow(beta1, step))),
        static_cast<op_t>(std::sqrt(1 - std::pow(beta2, step)))};
  }
};

void adam(
    at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
    at::TensorList max_exp_avg_sqs, at::TensorList steps, const Common& common, double beta1, double beta2, double eps,
    bool amsgrad, bool decoupled) {
  MUSA_DISPATCH(self[0].scalar_type(), "fused_adam", (MUSA_FLOATING), {
    const Adam<scalar_t> op{common, beta1, beta2, eps, decoupled, amsgrad};
    update_lists<scalar_t>(op, self, grads, exp_avgs, exp_avg_sqs, amsgrad ? max_exp_avg_sqs : exp_avg_sqs, steps);
  });
}

template <typename T>
struct Sgd {
  using op_t = at::opmath_type<T>;
  Common common;
  double momentum, dampening;
  bool nesterov, is_first_step;

  // Elements of (parameter, gradient, momentum buffer).
  struct Update : Gradients<T> {
    static constexpr int kLists = 3;
    bool nesterov, is_first_step;
    op_t momentum, share, rate;

    __device__ bool reads(int list) const { return list != 2 || (momentum != 0 && !is_first_step); }
    __device__ bool writes(int list) const { return list == 0 || (list == 1 ? this->scaled : momentum != 0); }
    __device__ C10_ALWAYS_INLINE void operator()(op_t (&of)[kLists]) const {
      op_t g = this->descent(of[1]) + of[0] * this->decay;
      if (momentum != 0) {
        of[2] = is_first_step ? g : momentum * of[2] + share * g;
        g = nesterov ? g + momentum * of[2] : of[2];
      }
      of[0] = of[0] - rate * g;
    }
  };

  __device__ Update of(void* const*) const {
    return {
        Gradients<T>(common),
        nesterov,
        is_first_step,
        static_cast<op_t>(momentum),
        static_cast<op_t>(1 - dampening),
        static_cast<op_t>(common.rate())};
  }
};

void sgd(
    at::TensorList self, at::TensorList grads, at::TensorList buffers, const Common& common, double momentum,
    double dampening, bool nesterov, bool is_first_step) {
  MUSA_DISPATCH(self[0].scalar_type(), "fused_sgd", (MUSA_FLOATING), {
    const Sgd<scalar_t> op{common, momentum, dampening, nesterov, is_first_step};
    update_lists<scalar_t>(op, self, grads, momentum != 0 ? buffers : grads);
  });
}

template <typename T>
struct Adagrad {
  using op_t = at::opmath_type<T>;
  Common common;
  double lr_decay, eps;

  // Elements of (parameter, gradient, sum of squares).
  struct Update : Gradients<T> {
    static constexpr int kLists = 3;
    op_t rate, eps;

    __device__ bool reads(int) const { return true; }
    __device__ bool writes(int list) const { return list != 1 || this->scaled; }
    __device__ C10_ALWAYS_INLINE void operator()(op_t (&of)[kLists]) const {
      const op_t g = this->descent(of[1]) + of[0] * this->decay;
      of[2] += g * g;
      of[0] = of[0] - rate * g / (std::sqrt(of[2]) + eps);
    }
  };

  __device__ Update of(void* const* pointers) const {
    const double step = static_cast<double>(*static_cast<const float*>(pointers[3]));
    return {
        Gradients<T>(common),
        static_cast<op_t>(common.rate() / (1 + (step - 1) * lr_decay)),
        static_cast<op_t>(eps)};
  }
};

void adagrad(
    at::TensorList self, at::TensorList grads, at::TensorList sums, at::TensorList steps, const Common& common,
    double lr_decay, double eps) {
  MUSA_DISPATCH(self[0].scalar_type(), "fused_adagrad", (MUSA_FLOATING), {
    update_lists<scalar_t>(Adagrad<scalar_t>{common, lr_decay, eps}, self, grads, sums, steps);
  });
}

using MaybeTensor = std::optional<at::Tensor>;

} // namespace

void _fused_adam_(
    at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
    at::TensorList max_exp_avg_sqs, at::TensorList state_steps, double lr, double beta1, double beta2, double weight_decay,
    double eps, bool amsgrad, bool maximize, const MaybeTensor& grad_scale, const MaybeTensor& found_inf) {
  adam(
      self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
      common(self, lr, weight_decay, maximize, grad_scale, found_inf), beta1, beta2, eps, amsgrad, /*decoupled=*/false);
}
void _fused_adam__tensor_lr(
    at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
    at::TensorList max_exp_avg_sqs, at::TensorList state_steps, const at::Tensor& lr, double beta1, double beta2,
    double weight_decay, double eps, bool amsgrad, bool maximize, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
  Common shared = common(self, 0, weight_decay, maximize, grad_scale, found_inf);
  take_rate(shared, lr, self[0]);
  adam(
      self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, shared, beta1, beta2, eps, amsgrad,
      /*decoupled=*/false);
}
void _fused_adamw_(
    at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
    at::TensorList max_exp_avg_sqs, at::TensorList state_steps, double lr, double beta1, double beta2, double weight_decay,
    double eps, bool amsgrad, bool maximize, const MaybeTensor& grad_scale, const MaybeTensor& found_inf) {
  adam(
      self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
      common(self, lr, weight_decay, maximize, grad_scale, found_inf), beta1, beta2, eps, amsgrad, /*decoupled=*/true);
}
void _fused_adamw__tensor_lr(
    at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
    at::TensorList max_exp_avg_sqs, at::TensorList state_steps, const at::Tensor& lr, double beta1, double beta2,
    double weight_decay, double eps, bool amsgrad, bool maximize, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
  Common shared = common(self, 0, weight_decay, maximize, grad_scale, found_inf);
  take_rate(shared, lr, self[0]);
  adam(
      self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, shared, beta1, beta2, eps, amsgrad,
      /*decoupled=*/true);
}

void _fused_sgd_(
    at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list, double weight_decay, double momentum,
    double lr, double dampening, bool nesterov, bool maximize, bool is_first_step, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
  sgd(
      self, grads, momentum_buffer_list, common(self, lr, weight_decay, maximize, grad_scale, found_inf), momentum, dampening,
      nesterov, is_first_step);
}
void _fused_sgd__tensor_lr(
    at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list, double weight_decay, double momentum,
    const at::Tensor& lr, double dampening, bool nesterov, bool maximize, bool is_first_step, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
  Common shared = common(self, 0, weight_decay, maximize, grad_scale, found_inf);
  take_rate(shared, lr, self[0]);
  sgd(self, grads, momentum_buffer_list, shared, momentum, dampening, nesterov, is_first_step);
}

void _fused_adagrad_(
    at::TensorList self, at::TensorList grads, at::TensorList state_sums, at::TensorList state_steps, double lr,
    double lr_decay, double weight_decay, double eps, bool maximize, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
  adagrad(
      self, grads, state_sums, state_steps, common(self, lr, weight_decay, maximize, grad_scale, found_inf), lr_decay, eps);
}
void _fused_adagrad__tensor_lr(
    at::TensorList self, at::TensorList grads, at::TensorList state_sums, at::TensorList state_steps, const at::Tensor& lr,
    double lr_decay, double weight_decay, double eps, bool maximize, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
  Common shared = common(self, 0, weight_decay, maximize, grad_scale, found_inf);
  take_rate(shared, lr, self[0]);
  adagrad(self, grads, state_sums, state_steps, shared, lr_decay, eps);
}

} // namespace musa_ops_ported
