// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <musa_runtime/argument_checks.h>
#include <musa_runtime/op_pack.h>

// The gated cells of nn.LSTM and nn.GRU. torch uses these operators for every device except the CPU and has no composed
// form of them; here they are composed of operators that are dispatched to their own providers. Gates of a batch of B with
// H hidden units are (B, 4H) for the LSTM, in the order input, forget, cell, output (Hochreiter and Schmidhuber 1997, Gers
// et al. 2000), and (B, 3H) for the GRU, in the order reset, update, new (Cho et al. 2014, with the reset gate applied to
// the hidden product as torch documents).

namespace musa_runtime {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor with_bias(const Tensor& gates, const OptionalTensor& bias) {
  return bias.has_value() && bias->defined() ? gates + *bias : gates;
}

// Raises unless both gates are (B, gates * H) for a state of (B, H), and each bias has an element for each gate.
void check_cell(
    const char* op, const Tensor& input_gates, const Tensor& hidden_gates, const char* name, const Tensor& state,
    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias, int64_t gates) {
  check_dims(op, name, state, 2);
  const int64_t count = gates * state.size(1);
  check_shape(op, "input_gates", input_gates, {state.size(0), count});
  check_shape(op, "hidden_gates", hidden_gates, {state.size(0), count});
  check_shape(op, "input_bias", input_bias, {count});
  check_shape(op, "hidden_bias", hidden_bias, {count});
}

Tensor undefined_as_zeros(const OptionalTensor& gradient, const Tensor& like) {
  return gradient.has_value() && gradient->defined() ? *gradient : at::zeros_like(like);
}

Tensor sigmoid_gradient(const Tensor& gradient, const Tensor& output) { return gradient * output * (1 - output); }

Tensor tanh_gradient(const Tensor& gradient, const Tensor& output) { return gradient * (1 - output * output); }

} // namespace

// Returns (hy, cy, workspace); the workspace (B, 4H) keeps the activated gates for the backward pass.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(
    const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx, const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  check_cell("_thnn_fused_lstm_cell", input_gates, hidden_gates, "cx", cx, input_bias, hidden_bias, 4);
  const Tensor gates = with_bias(with_bias(input_gates + hidden_gates, input_bias), hidden_bias);
  const auto chunks = gates.chunk(4, 1);
  const Tensor input = at::sigmoid(chunks[0]);
  const Tensor forget = at::sigmoid(chunks[1]);
  const Tensor cell = at::tanh(chunks[2]);
  const Tensor output = at::sigmoid(chunks[3]);
  Tensor cy = forget * cx + input * cell;
  Tensor hy = output * at::tanh(cy);
  return {std::move(hy), std::move(cy), at::cat({input, forget, cell, output}, 1)};
}

// Returns gradients of (gates, cx, bias); the last is undefined without bias.
std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(
    const OptionalTensor& grad_hy, const OptionalTensor& grad_cy, const Tensor& cx, const Tensor& cy,
    const Tensor& workspace, bool has_bias) {
  if (!(grad_hy.has_value() && grad_hy->defined()) && !(grad_cy.has_value() && grad_cy->defined())) {
    return {};
  }
  const char* const op = "_thnn_fused_lstm_cell_backward_impl";
  check_dims(op, "cx", cx, 2);
  check_shape(op, "cy", cy, cx.sizes());
  check_shape(op, "grad_hy", grad_hy, cx.sizes());
  check_shape(op, "grad_cy", grad_cy, cx.sizes());
  check_shape(op, "workspace", workspace, {cx.size(0), 4 * cx.size(1)});
  const auto chunks = workspace.chunk(4, 1);
  const Tensor& input = chunks[0];
  const Tensor& forget = chunks[1];
  const Tensor& cell = chunks[2];
  const Tensor& output = chunks[3];
  const Tensor from_hidden = undefined_as_zeros(grad_hy, cy);
  const Tensor activated = at::tanh(cy);
  const Tensor grad_cell_state = tanh_gradient(from_hidden * output, activated) + undefined_as_zeros(grad_cy, cy);
  Tensor grad_gates = at::cat(
      {sigmoid_gradient(grad_cell_state * cell, input), sigmoid_gradient(grad_cell_state * cx, forget),
       tanh_gradient(grad_cell_state * input, cell), sigmoid_gradient(from_hidden * activated, output)},
      1);
  Tensor grad_bias = has_bias ? grad_gates.sum(0) : Tensor();
  return {std::move(grad_gates), grad_cell_state * forget, std::move(grad_bias)};
}

// Returns (hy, workspace); the workspace (B, 5H) keeps reset, update, new, the previous hidden state and the hidden product
// of the new gate.
std::tuple<Tensor, Tensor> gru_cell(
    const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx, const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  check_cell("_thnn_fused_gru_cell", input_gates, hidden_gates, "hx", hx, input_bias, hidden_bias, 3);
  const auto from_input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto from_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = at::sigmoid(from_input[0] + from_hidden[0]);
  const Tensor update = at::sigmoid(from_input[1] + from_hidden[1]);
  const Tensor fresh = at::tanh(from_input[2] + reset * from_hidden[2]);
  Tensor hy = fresh + update * (hx - fresh);
  return {std::move(hy), at::cat({reset, update, fresh, hx, from_hidden[2]}, 1)};
}

// Returns gradients of (input gates, hidden gates, hx, input bias, hidden bias).
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(
    const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const char* const op = "_thnn_fused_gru_cell_backward";
  check_dims(op, "grad_hy", grad_hy, 2);
  check_shape(op, "workspace", workspace, {grad_hy.size(0), 5 * grad_hy.size(1)});
  const auto chunks = workspace.chunk(5, 1);
  const Tensor& reset = chunks[0];
  const Tensor& update = chunks[1];
  const Tensor& fresh = chunks[2];
  const Tensor& hx = chunks[3];
  const Tensor& hidden_product = chunks[4];
  const Tensor grad_fresh = tanh_gradient(grad_hy * (1 - update), fresh);
  const Tensor grad_reset = sigmoid_gradient(grad_fresh * hidden_product, reset);
  const Tensor grad_update = sigmoid_gradient(grad_hy * (hx - fresh), update);
  Tensor grad_input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  Tensor grad_hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
  Tensor grad_input_bias = has_bias ? grad_input.sum(0) : Tensor();
  Tensor grad_hidden_bias = has_bias ? grad_hidden.sum(0) : Tensor();
  return {
      std::move(grad_input), std::move(grad_hidden), grad_hy * update, std::move(grad_input_bias),
      std::move(grad_hidden_bias)};
}

namespace {

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::_thnn_fused_lstm_cell", TORCH_FN(lstm_cell))
      .impl("aten::_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward))
      .impl("aten::_thnn_fused_gru_cell", TORCH_FN(gru_cell))
      .impl("aten::_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

} // namespace
} // namespace musa_runtime
