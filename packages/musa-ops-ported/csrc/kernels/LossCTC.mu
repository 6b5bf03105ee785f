// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Connectionist temporal classification: the probability of a label sequence, summed over all its alignments with the
// input, by forward and backward passes over the sequence with a blank between labels. All computations are in log
// space.
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/argument_checks.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/optional.h"
#include "kernels/LossCTC.h"

namespace musa_ops_ported {
namespace {

constexpr int kCtcThreads = 128;

template <typename T>
__device__ C10_ALWAYS_INLINE T log_sum(T a, T b, T c = -std::numeric_limits<T>::infinity()) {
  const T high_of_two = a > b ? a : b;
  T high = c > high_of_two ? c : high_of_two; // of the terms that are not NaN, which reaches the sum
  if (high == -std::numeric_limits<T>::infinity()) {
    high = 0;
  }
  return std::log(std::exp(a - high) + std::exp(b - high) + std::exp(c - high)) + high;
}

// Kernel arguments that describe a batch. Positions index the extended labels, with blanks at even positions.
template <typename T>
struct Batch {
  const T* log_probs; // (time, sample, class)
  int64_t time_step, sample_step, class_step;
  const int64_t* labels;
  int64_t label_step;
  const int64_t* input_lengths;
  const int64_t* target_lengths;
  const int64_t* label_starts;
  int64_t times, samples, classes, positions, blank;

  __device__ int64_t label(int64_t sample, int64_t position) const {
    if (position % 2 == 0) {
      return blank;
    }
    const int64_t label = labels[(label_starts[sample] + position / 2) * label_step];
    CUDA_KERNEL_ASSERT(label >= 0 && label < classes && "a label is out of the range of classes");
    return label;
  }
  __device__ T log_prob(int64_t time, int64_t sample, int64_t of_class) const {
    return log_probs[time * time_step + sample * sample_step + of_class * class_step];
  }
  // Whether the blank between two positions may be skipped: the labels must differ.
  __device__ bool may_skip(int64_t sample, int64_t from, int64_t to) const {
    return to % 2 == 1 && label(sample, from) != label(sample, to);
  }
  // The offset in a (sample, time, position) tensor.
  __device__ int64_t at(int64_t sample, int64_t time, int64_t position) const {
    return (sample * times + time) * positions + position;
  }
};

// One block per sample; its threads process positions in parallel, and time steps in sequence.
template <typename T>
__global__ void C10_LAUNCH_BOUNDS_1(kCtcThreads) ctc_alpha(const Batch<T> batch, T* const alpha, T* const loss) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  for (int64_t sample = blockIdx.x; sample < batch.samples; sample += gridDim.x) {
    const int64_t length = batch.input_lengths[sample];
    const int64_t used = 2 * batch.target_lengths[sample] + 1;
    for (int64_t time = 0; time < batch.times; ++time) {
      for (int64_t s = threadIdx.x; s < batch.positions; s += blockDim.x) {
        T sum = none;
        if (time < length && s < used) {
          if (time == 0) {
            sum = s < 2 ? T(0) : none;
          } else {
            const T* const before = alpha + batch.at(sample, time - 1, s);
            sum = log_sum(
                before[0], s > 0 ? before[-1] : none, s > 1 && batch.may_skip(sample, s - 2, s) ? before[-2] : none);
          }
          sum += batch.log_prob(time, sample, batch.label(sample, s));
        }
        alpha[batch.at(sample, time, s)] = sum;
      }
      if (time < length) {
        __syncthreads();
      }
    }
    if (threadIdx.x == 0) {
      if (length == 0) {
        loss[sample] = used == 1 ? T(0) : -none;
      } else {
        const T last = alpha[batch.at(sample, length - 1, used - 1)];
        loss[sample] = -(used > 1 ? log_sum(last, alpha[batch.at(sample, length - 1, used - 2)]) : last);
      }
    }
  }
}

template <typename T>
__global__ void C10_LAUNCH_BOUNDS_1(kCtcThreads) ctc_beta(const Batch<T> batch, T* const beta) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  for (int64_t sample = blockIdx.x; sample < batch.samples; sample += gridDim.x) {
    const int64_t length = batch.input_lengths[sample];
    const int64_t used = 2 * batch.target_lengths[sample] + 1;
    for (int64_t time = length - 1; time >= 0; --time) {
      for (int64_t s = threadIdx.x; s < used; s += blockDim.x) {
        T sum = none;
        if (time == length - 1) {
          sum = s + 2 >= used ? T(0) : none;
        } else {
          const T* const after = beta + batch.at(sample, time + 1, s);
          sum = log_sum(
              after[0], s + 1 < used ? after[1] : none,
              s + 2 < used && batch.may_skip(sample, s, s + 2) ? after[2] : none);
        }
        beta[batch.at(sample, time, s)] = sum + batch.log_prob(time, sample, batch.label(sample, s));
      }
      __syncthreads();
    }
  }
}

// Each thread gathers, for one sample and time, the positions of each of its classes.
template <typename T>
void ctc_gradient(
    const Batch<T>& batch, const at::Tensor& grad, const at::Tensor& losses, const at::Tensor& alphas,
    const at::Tensor& betas, bool zero_infinity, const at::Tensor& grad_input) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  const T* const g = grad.const_data_ptr<T>();
  const int64_t grad_step = grad.stride(0);
  const T* const loss = losses.const_data_ptr<T>();
  const T* const alpha = alphas.const_data_ptr<T>();
  const T* const beta = betas.const_data_ptr<T>();
  T* const out = grad_input.mutable_data_ptr<T>();
  for_each(batch.times * batch.samples, [=] __device__(int64_t i) {
    const int64_t time = i / batch.samples, sample = i % batch.samples;
    T* const to = out + i * batch.classes;
    const bool counts = time < batch.input_lengths[sample] && !(zero_infinity && loss[sample] == -none);
    for (int64_t k = 0; k < batch.classes; ++k) {
      to[k] = counts ? none : T(0);
    }
    if (!counts) {
      return;
    }
    const int64_t used = 2 * batch.target_lengths[sample] + 1;
    for (int64_t s = used - 1; s >= 0; --s) { // in the order of the CPU kernel
      const int64_t at = batch.at(sample, time, s), label = batch.label(sample, s);
      to[label] = log_sum(to[label], alpha[at] + beta[at]);
    }
    for (int64_t k = 0; k < batch.classes; ++k) {
      const T log_prob = batch.log_prob(time, sample, k);
      to[k] = (std::exp(log_prob) - std::exp(to[k] + loss[sample] - log_prob)) * g[sample * grad_step];
    }
  });
}

// Lengths and labels on the device, and the start of each sample's labels.
struct Sequences {
  at::Tensor labels, numbers; // numbers: input lengths, target lengths and starts
  int64_t samples, longest = 0;

  Sequences(
      const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
      at::IntArrayRef target_lengths, int64_t blank)
      : labels(dense_as(targets, at::kLong)) {
    TORCH_CHECK(log_probs.dim() == 3, "log_probs must be 3-dimensional (time, batch, class), got ", log_probs.sizes());
    TORCH_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
    TORCH_CHECK(
        targets.scalar_type() == at::kLong || targets.scalar_type() == at::kInt,
        "targets must be of dtype int32 or int64, got ", targets.scalar_type());
    TORCH_CHECK(
        targets.device() == log_probs.device(), "expected targets on ", log_probs.device(), ", got ", targets.device());
    samples = log_probs.size(1);
    TORCH_CHECK(blank >= 0 && blank < log_probs.size(2), "blank must be in label range");
    TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == samples, "input_lengths must be of size batch_size");
    TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == samples, "target_lengths must be of size batch_size");
    std::vector<int64_t> starts;
    int64_t total = 0;
    for (int64_t sample = 0; sample < samples; ++sample) {
      const int64_t length = target_lengths[sample];
      TORCH_CHECK(length >= 0, "Expected target_lengths to have value at least 0, but got value ", length);
      TORCH_CHECK(
          input_lengths[sample] >= 0 && input_lengths[sample] <= log_probs.size(0),
          "Expected input_lengths to have value from 0 to ", log_probs.size(0), ", but got value ",
          input_lengths[sample]);
      starts.push_back(targets.dim() == 1 ? total : sample * targets.size(1));
      total += length;
      longest = std::max(longest, length);
    }
    if (targets.dim() == 1) {
      TORCH_CHECK(
          targets.numel() == total, "Expected targets to be of size ", total, ", the sum of target_lengths, got ",
          targets.numel());
    } else {
      TORCH_CHECK(
          targets.dim() == 2 && targets.size(0) == samples && targets.size(1) >= longest,
          "Expected targets to have a row of at least ", longest, " labels for each of ", samples, " samples, got ",
          targets.sizes());
    }
    std::vector<int64_t> all(input_lengths.begin(), input_lengths.end());
    all.insert(all.end(), target_lengths.begin(), target_lengths.end());
    all.insert(all.end(), starts.begin(), starts.end());
    numbers = at::tensor(all, at::TensorOptions().dtype(at::kLong)).to(log_probs.device());
  }

  template <typename T>
  Batch<T> batch(const at::Tensor& log_probs, int64_t blank) const {
    const int64_t* const of = numbers.const_data_ptr<int64_t>();
    return {
        log_probs.const_data_ptr<T>(),
        log_probs.stride(0),
        log_probs.stride(1),
        log_probs.stride(2),
        labels.const_data_ptr<int64_t>(),
        1,
        of,
        of + samples,
        of + 2 * samples,
        log_probs.size(0),
        samples,
        log_probs.size(2),
        2 * longest + 1,
        blank};
  }
  // Threads per block: one per position, up to kCtcThreads.
  int threads() const {
    int result = 32;
    while (result < kCtcThreads && result < 2 * longest + 1) {
      result *= 2;
    }
    return result;
  }
  unsigned blocks() const { return static_cast<unsigned>(std::min<int64_t>(samples, 1 << 16)); }
};

} // namespace

std::tuple<at::Tensor, at::Tensor> _ctc_loss(
    const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
    at::IntArrayRef target_lengths, int64_t blank, bool) {
  const Sequences sequences(log_probs, targets, input_lengths, target_lengths, blank);
  const at::Tensor alpha =
      aten::empty({sequences.samples, log_probs.size(0), 2 * sequences.longest + 1}, log_probs.options());
  const at::Tensor loss = aten::empty({sequences.samples}, log_probs.options());
  MUSA_DISPATCH(log_probs.scalar_type(), "ctc_loss", (AT_EXPAND(AT_FLOATING_TYPES)), {
    ctc_alpha<scalar_t><<<sequences.blocks(), sequences.threads(), 0, c10::musa::getCurrentMUSAStream()>>>(
        sequences.batch<scalar_t>(log_probs, blank), alpha.mutable_data_ptr<scalar_t>(),
        loss.mutable_data_ptr<scalar_t>());
    C10_MUSA_KERNEL_LAUNCH_CHECK();
  });
  return {loss, alpha};
}

at::Tensor _ctc_loss_backward(
    const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
    at::IntArrayRef target_lengths, const at::Tensor& neg_log_likelihood, const at::Tensor& log_alpha, int64_t blank,
    bool zero_infinity) {
  const Sequences sequences(log_probs, targets, input_lengths, target_lengths, blank);
  const char* const op = "_ctc_loss_backward";
  musa_runtime::check_shape(op, "grad", grad, {sequences.samples});
  musa_runtime::check_shape(op, "neg_log_likelihood", neg_log_likelihood, {sequences.samples});
  musa_runtime::check_shape(
      op, "log_alpha", log_alpha, {sequences.samples, log_probs.size(0), 2 * sequences.longest + 1});
  const at::Tensor alpha = log_alpha.contiguous(), loss = neg_log_likelihood.contiguous();
  const at::Tensor beta = aten::empty_like(alpha);
  const at::Tensor grad_input = aten::empty_like(log_probs, at::MemoryFormat::Contiguous);
  MUSA_DISPATCH(log_probs.scalar_type(), "ctc_loss_backward", (AT_EXPAND(AT_FLOATING_TYPES)), {
    const auto batch = sequences.batch<scalar_t>(log_probs, blank);
    ctc_beta<scalar_t><<<sequences.blocks(), sequences.threads(), 0, c10::musa::getCurrentMUSAStream()>>>(
        batch, beta.mutable_data_ptr<scalar_t>());
    C10_MUSA_KERNEL_LAUNCH_CHECK();
    ctc_gradient<scalar_t>(batch, grad, loss, alpha, beta, zero_infinity, grad_input);
  });
  return grad_input;
}

} // namespace musa_ops_ported
