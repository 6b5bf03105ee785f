// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <vector>

// One layer of a recurrent network in one direction, as a loop over time: one product with the input for all steps, then one
// product with the hidden state and one cell per step. The backward pass does the same in reverse, and computes each weight's
// gradient by one product over all steps.

namespace musa_runtime {

// torch's numbers (native/RNN.h), which are cuDNN's.
enum class RecurrentMode : int64_t { Relu = 0, Tanh = 1, Lstm = 2, Gru = 3 };

// B: batch, T: steps, I: input size, H: hidden size, P: size of the hidden state, which is H without a projection;
// N: sum of batch_sizes.
struct RecurrentLayer {
  at::Tensor input; // (T, B, I), or packed (N, I)
  std::vector<at::Tensor> state; // h (B, P); with LSTM also c (B, H)
  std::vector<at::Tensor>
      weights; // (G * H, I), (G * H, P), two biases (G * H) if has_biases, projection (P, H) if P != H
  std::vector<int64_t> batch_sizes; // of each step, not increasing
  RecurrentMode mode;
  bool has_biases;
  bool reverse; // from the last step to the first
};

// Raises unless all shapes and lengths of the layer belong together.
void check_layer(const RecurrentLayer& layer);

struct RecurrentResult {
  at::Tensor output; // (T, B, P) or (N, P)
  std::vector<at::Tensor> state; // like that of the layer
  // For the backward pass; empty unless `keep`. Shares no memory with the results, which programs may change in place.
  std::vector<at::Tensor> kept;
};
RecurrentResult recurrent_steps(const RecurrentLayer& layer, bool keep);

// Gradients of the results; undefined tensors represent zeros.
struct RecurrentGradients {
  at::Tensor output;
  std::vector<at::Tensor> state;
};
// Raises unless the gradients have the shapes of the layer's results.
void check_gradients(const RecurrentLayer& layer, const RecurrentGradients& gradients);

struct RecurrentInputGradients {
  at::Tensor input;
  std::vector<at::Tensor> state;
  std::vector<at::Tensor> weights;
};
// wanted: input, state, weights. Gradients that are not requested are undefined.
RecurrentInputGradients recurrent_steps_backward(
    const RecurrentLayer& layer, const std::vector<at::Tensor>& kept, const RecurrentGradients& gradients,
    std::array<bool, 3> wanted);

// Whether recurrent_steps() returned `kept`: another provider may have served the forward pass.
bool is_kept_by_steps(const RecurrentLayer& layer, const std::vector<at::Tensor>& kept);

} // namespace musa_runtime
