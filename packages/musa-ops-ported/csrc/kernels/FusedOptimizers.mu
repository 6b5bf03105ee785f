// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Optimizer steps over all parameters in one launch, with the formulas documented for torch.optim's Adam, AdamW, SGD
// and Adagrad. The states of half-precision parameters are computed in float.
#include <ATen/core/Tensor.h>

#include <cmath>

#include "engines/dispatch.h"
#include "engines/tensor_lists.muh"
#include "kernels/FusedOptimizers.h"

namespace musa_ops_ported {
namespace {

// GradScaler's inputs and the learning rate, which may be in device memory. Pointers are nullptr if not given.
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

// The part of an update that all optimizers share. Scalars are loaded once per tensor.
template <typename T>
struct Gradients {
  using op_t = at::opmath_type<T>;
  T* grad;
  bool skipped, scaled, maximize;
  op_t scale, decay;

  __device__ Gradients(const Common& common, void* grad)
      : grad(static_cast<T*>(grad)),
        skipped(common.skipped()),
        scaled(common.grad_scale != nullptr),
        maximize(common.maximize),
        scale(scaled ? static_cast<op_t>(*common.grad_scale) : op_t(1)),
        decay(static_cast<op_t>(common.weight_decay)) {}

  // Turns loaded gradients into descent directions, and stores the unscaled gradients.
  template <int count>
  __device__ C10_ALWAYS_INLINE void descend(const Neighbours<count>& at, Vector<op_t, count>& g) const {
    if (scaled) {
      for (int k = 0; k < count; ++k) {
        g.values[k] /= scale;
      }
      at.store(grad, g);
    }
    if (maximize) {
      for (int k = 0; k < count; ++k) {
        g.values[k] = -g.values[k];
      }
    }
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
      scalar_on_device(grad_scale, self[0], "grad_scale"),
      scalar_on_device(found_inf, self[0], "found_inf"),
      nullptr,
      lr,
      weight_decay,
      maximize};
}

// The learning rate: a tensor on the device is read by the kernel, a host tensor is read here.
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
  bool decoupled, amsgrad; // decoupled: weight decay is not added to the gradient, as in AdamW

  static constexpr int kElements = 5;

  struct Update : Gradients<T> {
    bool decoupled, amsgrad;
    T *param, *exp_avg, *exp_avg_sq, *max_exp_avg_sq;
    op_t beta1, beta2, eps, rate, step_size, root_of_correction;

    template <int count>
    __device__ C10_ALWAYS_INLINE void operator()(const Neighbours<count>& at) const {
      auto p = at.load(param);
      auto g = at.load(this->grad);
      auto mean = at.load(exp_avg);
      auto square = at.load(exp_avg_sq);
      this->descend(at, g);
      if (this->decay != 0) {
        if (decoupled) {
          for (int k = 0; k < count; ++k) {
            p.values[k] -= rate * this->decay * p.values[k];
          }
        } else {
          for (int k = 0; k < count; ++k) {
            g.values[k] += p.values[k] * this->decay;
          }
        }
      }
      for (int k = 0; k < count; ++k) {
        mean.values[k] = beta1 * mean.values[k] + (1 - beta1) * g.values[k];
        square.values[k] = beta2 * square.values[k] + (1 - beta2) * g.values[k] * g.values[k];
      }
      at.store(exp_avg, mean);
      at.store(exp_avg_sq, square);
      if (amsgrad) {
        const auto before = at.load(max_exp_avg_sq);
        for (int k = 0; k < count; ++k) {
          square.values[k] = before.values[k] > square.values[k] ? before.values[k] : square.values[k];
        }
        at.store(max_exp_avg_sq, square);
      }
      for (int k = 0; k < count; ++k) {
        p.values[k] -= step_size * mean.values[k] / (std::sqrt(square.values[k]) / root_of_correction + eps);
      }
      at.store(param, p);
    }
  };

  __device__ Update of(void* const* pointers) const {
    const double step = static_cast<double>(*static_cast<const float*>(pointers[5]));
    const double rate = common.rate();
    return {
        Gradients<T>(common, pointers[1]),
        decoupled,
        amsgrad,
        static_cast<T*>(pointers[0]),
        static_cast<T*>(pointers[2]),
        static_cast<T*>(pointers[3]),
        static_cast<T*>(pointers[4]),
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

  static constexpr int kElements = 3;

  struct Update : Gradients<T> {
    bool nesterov, is_first_step;
    T *param, *buffer;
    op_t momentum, share, rate;

    template <int count>
    __device__ C10_ALWAYS_INLINE void operator()(const Neighbours<count>& at) const {
      auto p = at.load(param);
      auto g = at.load(this->grad);
      this->descend(at, g);
      for (int k = 0; k < count; ++k) {
        g.values[k] += p.values[k] * this->decay;
      }
      if (momentum != 0) {
        auto velocity = g;
        if (!is_first_step) {
          const auto before = at.load(buffer);
          for (int k = 0; k < count; ++k) {
            velocity.values[k] = momentum * before.values[k] + share * g.values[k];
          }
        }
        at.store(buffer, velocity);
        if (nesterov) {
          for (int k = 0; k < count; ++k) {
            g.values[k] += momentum * velocity.values[k];
          }
        } else {
          g = velocity;
        }
      }
      for (int k = 0; k < count; ++k) {
        p.values[k] -= rate * g.values[k];
      }
      at.store(param, p);
    }
  };

  __device__ Update of(void* const* pointers) const {
    return {
        Gradients<T>(common, pointers[1]),
        nesterov,
        is_first_step,
        static_cast<T*>(pointers[0]),
        static_cast<T*>(pointers[2]),
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

  static constexpr int kElements = 3;

  struct Update : Gradients<T> {
    T *param, *sum;
    op_t rate, eps;

    template <int count>
    __device__ C10_ALWAYS_INLINE void operator()(const Neighbours<count>& at) const {
      auto p = at.load(param);
      auto g = at.load(this->grad);
      auto squares = at.load(sum);
      this->descend(at, g);
      for (int k = 0; k < count; ++k) {
        g.values[k] += p.values[k] * this->decay;
      }
      for (int k = 0; k < count; ++k) {
        squares.values[k] += g.values[k] * g.values[k];
      }
      for (int k = 0; k < count; ++k) {
        p.values[k] -= rate * g.values[k] / (std::sqrt(squares.values[k]) + eps);
      }
      at.store(sum, squares);
      at.store(param, p);
    }
  };

  __device__ Update of(void* const* pointers) const {
    const double step = static_cast<double>(*static_cast<const float*>(pointers[3]));
    return {
        Gradients<T>(common, pointers[1]), static_cast<T*>(pointers[0]), static_cast<T*>(pointers[2]),
        static_cast<op_t>(common.rate() / (1 + (step - 1) * lr_decay)), static_cast<op_t>(eps)};
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
    at::TensorList max_exp_avg_sqs, at::TensorList state_steps, double lr, double beta1, double beta2,
    double weight_decay, double eps, bool amsgrad, bool maximize, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
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
    at::TensorList max_exp_avg_sqs, at::TensorList state_steps, double lr, double beta1, double beta2,
    double weight_decay, double eps, bool amsgrad, bool maximize, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
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
    at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list, double weight_decay,
    double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
    const MaybeTensor& grad_scale, const MaybeTensor& found_inf) {
  sgd(self, grads, momentum_buffer_list, common(self, lr, weight_decay, maximize, grad_scale, found_inf), momentum,
      dampening, nesterov, is_first_step);
}
void _fused_sgd__tensor_lr(
    at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list, double weight_decay,
    double momentum, const at::Tensor& lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
    const MaybeTensor& grad_scale, const MaybeTensor& found_inf) {
  Common shared = common(self, 0, weight_decay, maximize, grad_scale, found_inf);
  take_rate(shared, lr, self[0]);
  sgd(self, grads, momentum_buffer_list, shared, momentum, dampening, nesterov, is_first_step);
}

void _fused_adagrad_(
    at::TensorList self, at::TensorList grads, at::TensorList state_sums, at::TensorList state_steps, double lr,
    double lr_decay, double weight_decay, double eps, bool maximize, const MaybeTensor& grad_scale,
    const MaybeTensor& found_inf) {
  adagrad(
      self, grads, state_sums, state_steps, common(self, lr, weight_decay, maximize, grad_scale, found_inf), lr_decay,
      eps);
}
void _fused_adagrad__tensor_lr(
    at::TensorList self, at::TensorList grads, at::TensorList state_sums, at::TensorList state_steps,
    const at::Tensor& lr, double lr_decay, double weight_decay, double eps, bool maximize,
    const MaybeTensor& grad_scale, const MaybeTensor& found_inf) {
  Common shared = common(self, 0, weight_decay, maximize, grad_scale, found_inf);
  take_rate(shared, lr, self[0]);
  adagrad(self, grads, state_sums, state_steps, shared, lr_decay, eps);
}

} // namespace musa_ops_ported
