// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

// The cells of LSTM and GRU, composed from pointwise operators: for tensors of any device.

namespace musa_runtime {

// Returns (hy, cy, workspace); the workspace (B, 4H) keeps the activated gates for the backward pass.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(
    const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
    const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias);

// Returns gradients of (gates, cx, bias); the last is undefined without bias.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const std::optional<at::Tensor>& grad_hy, const std::optional<at::Tensor>& grad_cy, const at::Tensor& cx,
    const at::Tensor& cy, const at::Tensor& workspace, bool has_bias);

// Returns (hy, workspace); the workspace (B, 5H) keeps reset, update, new, the previous hidden state and the hidden product
// of the new gate.
std::tuple<at::Tensor, at::Tensor> gru_cell(
    const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& hx,
    const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias);

// Returns gradients of (input gates, hidden gates, hx, input bias, hidden bias).
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(
    const at::Tensor& grad_hy, const at::Tensor& workspace, bool has_bias);

} // namespace musa_runtime
