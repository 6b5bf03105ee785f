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

  // The gradient of an element, unscaled where it lies and in the direction to descend.
  template <typename T>
  __device__ at::opmath_type<T> gradient(T* place) const {
    using op_t = at::opmath_type<T>;
    op_t value = static_cast<op_t>(*place);
    if (grad_scale != nullptr) {
      value /= static_cast<op_t>(*grad_scale);
      *place = static_cast<T>(value);
    }
    return maximize ? -value : value;
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

  struct Update {
    const Adam& op;
    T *param, *grad, *exp_avg, *exp_avg_sq, *max_exp_avg_sq;
    op_t rate, step_size, root_of_correction;
    bool skipped;

    __device__ void operator()(int64_t i) const {
      if (skipped) {
        return;
      }
      op_t p = static_cast<op_t>(param[i]);
      op_t g = op.common.gradient(grad + i);
      const op_t decay = static_cast<op_t>(op.common.weight_decay);
      if (decay != 0) {
        if (op.decoupled) {
          p -= rate * decay * p;
        } else {
          g += p * decay;
        }
      }
      const op_t b1 = static_cast<op_t>(op.beta1);
      const op_t b2 = static_cast<op_t>(op.beta2);
      const op_t mean = b1 * static_cast<op_t>(exp_avg[i]) + (1 - b1) * g;
      const op_t square = b2 * static_cast<op_t>(exp_avg_sq[i]) + (1 - b2) * g * g;
      op_t largest = square;
      if (op.amsgrad) {
        const op_t before = static_cast<op_t>(max_exp_avg_sq[i]);
        largest = before > square ? before : square;
        max_exp_avg_sq[i] = static_cast<T>(largest);
      }
      exp_avg[i] = static_cast<T>(mean);
      exp_avg_sq[i] = static_cast<T>(square);
      const op_t denominator = std::sqrt(largest) / root_of_correction + static_cast<op_t>(op.eps);
      param[i] = static_cast<T>(p - step_size * mean / denominator);
    }
  };

  __device__ Update of(void* const* pointers) const {
    const double step = static_cast<double>(*static_cast<const float*>(pointers[5]));
    const double rate = common.rate();
    return {
        *this,
        static_cast<T*>(pointers[0]),
        static_cast<T*>(pointers[1]),
        static_cast<T*>(pointers[2]),
        static_cast<T*>(pointers[3]),
        static_cast<T*>(pointers[4]),
        static_cast<op_t>(rate),
        static_cast<op_t>(rate / (1 - std::pow(beta1, step))),
        static_cast<op_t>(std::sqrt(1 - std::pow(beta2, step))),
        common.skipped()};
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

  struct Update {
    const Sgd& op;
    T *param, *grad, *buffer;
    op_t rate;
    bool skipped;

    __device__ void operator()(int64_t i) const {
      if (skipped) {
        return;
      }
      const op_t p = static_cast<op_t>(param[i]);
      op_t g = op.common.gradient(grad + i) + p * static_cast<op_t>(op.common.weight_decay);
      const op_t momentum = static_cast<op_t>(op.momentum);
      if (momentum != 0) {
        const op_t velocity =
            op.is_first_step ? g : momentum * static_cast<op_t>(buffer[i]) + static_cast<op_t>(1 - op.dampening) * g;
        buffer[i] = static_cast<T>(velocity);
        g = op.nesterov ? g + momentum * velocity : velocity;
      }
      param[i] = static_cast<T>(p - rate * g);
    }
  };

  __device__ Update of(void* const* pointers) const {
    return {
        *this,
        static_cast<T*>(pointers[0]),
        static_cast<T*>(pointers[1]),
        static_cast<T*>(pointers[2]),
        static_cast<op_t>(common.rate()),
        common.skipped()};
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

  struct Update {
    const Adagrad& op;
    T *param, *grad, *sum;
    op_t rate;
    bool skipped;

    __device__ void operator()(int64_t i) const {
      if (skipped) {
        return;
      }
      const op_t p = static_cast<op_t>(param[i]);
      const op_t g = op.common.gradient(grad + i) + p * static_cast<op_t>(op.common.weight_decay);
      const op_t squares = static_cast<op_t>(sum[i]) + g * g;
      sum[i] = static_cast<T>(squares);
      param[i] = static_cast<T>(p - rate * g / (std::sqrt(squares) + static_cast<op_t>(op.eps)));
    }
  };

  __device__ Update of(void* const* pointers) const {
    const double step = static_cast<double>(*static_cast<const float*>(pointers[3]));
    return {
        *this,
        static_cast<T*>(pointers[0]),
        static_cast<T*>(pointers[1]),
        static_cast<T*>(pointers[2]),
        static_cast<op_t>(common.rate() / (1 + (step - 1) * lr_decay)),
        common.skipped()};
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
