// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

// One layer of an LSTM in one direction by oneDNN, which torch uses for the same calls on the CPU. The runtime composes other
// layers from operators.

namespace musa_ops_host {

using RecurrentTensors = std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>>;

// Returns (output, state, tensors kept for the gradient).
RecurrentTensors recurrent_layer(
    const at::Tensor& input, at::TensorList state, at::TensorList weights, at::IntArrayRef batch_sizes, int64_t mode,
    bool has_biases, bool reverse, bool keep);
bool recurrent_layer_is_served(
    const at::Tensor& input, at::TensorList state, at::TensorList weights, at::IntArrayRef batch_sizes, int64_t mode,
    bool has_biases, bool reverse, bool keep);

// Returns the gradients of (input, state, weights).
RecurrentTensors recurrent_layer_backward(
    const std::optional<at::Tensor>& grad_output, const std::optional<at::Tensor>& grad_hidden,
    const std::optional<at::Tensor>& grad_cell, const at::Tensor& input, at::TensorList state, at::TensorList weights,
    at::TensorList kept, at::IntArrayRef batch_sizes, int64_t mode, bool has_biases, bool reverse,
    std::array<bool, 3> wanted);
bool recurrent_layer_backward_is_served(
    const std::optional<at::Tensor>& grad_output, const std::optional<at::Tensor>& grad_hidden,
    const std::optional<at::Tensor>& grad_cell, const at::Tensor& input, at::TensorList state, at::TensorList weights,
    at::TensorList kept, at::IntArrayRef batch_sizes, int64_t mode, bool has_biases, bool reverse,
    std::array<bool, 3> wanted);

} // namespace musa_ops_host
