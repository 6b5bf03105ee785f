// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The pointwise part of LSTM and GRU cells: from the matrix products with the weights to the new state.
#include <ATen/core/Tensor.h>
#include <musa_runtime/argument_checks.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/optional.h"
#include "kernels/RNN.h"

namespace musa_ops_ported {
namespace {

using musa_runtime::check_dims;
using musa_runtime::check_shape;

template <typename Real>
__device__ Real sigmoid(Real x) {
  return Real(1) / (Real(1) + std::exp(-x));
}

// Gates of shape (batch, count * width) from the input and from the hidden state. Biases have count * width elements.
template <typename T>
struct Gates {
  using Real = at::opmath_type<T>;
  const T* from_input;
  const T* from_hidden;
  const T* input_bias;
  const T* hidden_bias;
  int64_t width, count;

  __device__ int64_t at(int64_t i, int64_t gate) const { return i / width * width * count + gate * width + i % width; }
  __device__ Real bias(const T* of, int64_t i, int64_t gate) const {
    return of != nullptr ? static_cast<Real>(of[gate * width + i % width]) : Real(0);
  }
  __device__ Real input(int64_t i, int64_t gate) const {
    return static_cast<Real>(from_input[at(i, gate)]) + bias(input_bias, i, gate);
  }
  __device__ Real hidden(int64_t i, int64_t gate) const {
    return static_cast<Real>(from_hidden[at(i, gate)]) + bias(hidden_bias, i, gate);
  }
  __device__ Real sum(int64_t i, int64_t gate) const { return input(i, gate) + hidden(i, gate); }
};

// Contiguous operands of a cell; keeps them alive during the call.
struct Operands {
  at::Tensor input, hidden, input_bias, hidden_bias, state;
  int64_t count;

  Operands(
      const at::Tensor& input_gates, const at::Tensor& hidden_gates, const std::optional<at::Tensor>& input_biases,
      const std::optional<at::Tensor>& hidden_biases, const at::Tensor& before, int64_t gates)
      : input(input_gates.contiguous()),
        hidden(hidden_gates.contiguous()),
        input_bias(dense_as(input_biases, input_gates.scalar_type())),
        hidden_bias(dense_as(hidden_biases, input_gates.scalar_type())),
        state(before.contiguous()),
        count(gates) {
    TORCH_CHECK(
        input.dim() == 2 && input.sizes() == hidden.sizes(), "expected gates of (batch, gates) and one size, got ",
        input.sizes(), " and ", hidden.sizes());
    TORCH_CHECK(
        state.dim() == 2 && state.size(0) == input.size(0) && state.size(1) * count == input.size(1), "expected ",
        count, " gates for each element of a state of ", state.sizes(), ", got ", input.sizes());
    TORCH_CHECK(input_bias.defined() == hidden_bias.defined(), "expected both biases or none");
    TORCH_CHECK(
        !input_bias.defined() || (input_bias.numel() == input.size(1) && hidden_bias.numel() == input.size(1)),
        "expected biases of ", input.size(1), " elements");
  }
  template <typename T>
  Gates<T> gates() const {
    return {
        input.const_data_ptr<T>(),
        hidden.const_data_ptr<T>(),
        data_or_null<T>(input_bias),
        data_or_null<T>(hidden_bias),
        state.size(1),
        count};
  }
};

// ---- LSTM: gate order is input, forget, cell, output

template <typename T>
void lstm(const Operands& operands, const at::Tensor& hy, const at::Tensor& cy, const at::Tensor& workspace) {
  using Real = at::opmath_type<T>;
  const Gates<T> gates = operands.gates<T>();
  const T* const cell = operands.state.const_data_ptr<T>();
  T* const new_hidden = hy.mutable_data_ptr<T>();
  T* const new_cell = cy.mutable_data_ptr<T>();
  T* const kept = workspace.mutable_data_ptr<T>();
  for_each(cy.numel(), [=] __device__(int64_t i) {
    const Real in = sigmoid(gates.sum(i, 0));
    const Real forget = sigmoid(gates.sum(i, 1));
    const Real candidate = std::tanh(gates.sum(i, 2));
    const Real out = sigmoid(gates.sum(i, 3));
    const Real c = forget * static_cast<Real>(cell[i]) + in * candidate;
    new_cell[i] = static_cast<T>(c);
    new_hidden[i] = static_cast<T>(out * std::tanh(c));
    kept[gates.at(i, 0)] = static_cast<T>(in);
    kept[gates.at(i, 1)] = static_cast<T>(forget);
    kept[gates.at(i, 2)] = static_cast<T>(candidate);
    kept[gates.at(i, 3)] = static_cast<T>(out);
  });
}

template <typename T>
void lstm_gradients(
    const at::Tensor& grad_hy, const at::Tensor& grad_cy, const at::Tensor& cx, const at::Tensor& cy,
    const at::Tensor& workspace, const at::Tensor& grad_gates, const at::Tensor& grad_cx) {
  using Real = at::opmath_type<T>;
  const T* const gh = data_or_null<T>(grad_hy);
  const T* const gc = data_or_null<T>(grad_cy);
  const T* const before = cx.const_data_ptr<T>();
  const T* const after = cy.const_data_ptr<T>();
  const T* const kept = workspace.const_data_ptr<T>();
  T* const to = grad_gates.mutable_data_ptr<T>();
  T* const to_cell = grad_cx.mutable_data_ptr<T>();
  const int64_t width = cx.size(1);
  for_each(cx.numel(), [=] __device__(int64_t i) {
    const int64_t at = i / width * width * 4 + i % width;
    const Real in = static_cast<Real>(kept[at]), forget = static_cast<Real>(kept[at + width]);
    const Real candidate = static_cast<Real>(kept[at + 2 * width]), out = static_cast<Real>(kept[at + 3 * width]);
    const Real g = gh != nullptr ? static_cast<Real>(gh[i]) : Real(0);
    const Real bent = std::tanh(static_cast<Real>(after[i]));
    const Real of_cell = g * out * (Real(1) - bent * bent) + (gc != nullptr ? static_cast<Real>(gc[i]) : Real(0));
    to[at] = static_cast<T>(of_cell * candidate * in * (Real(1) - in));
    to[at + width] = static_cast<T>(of_cell * static_cast<Real>(before[i]) * forget * (Real(1) - forget));
    to[at + 2 * width] = static_cast<T>(of_cell * in * (Real(1) - candidate * candidate));
    to[at + 3 * width] = static_cast<T>(g * bent * out * (Real(1) - out));
    to_cell[i] = static_cast<T>(of_cell * forget);
  });
}

// ---- GRU: gate order is reset, update, new. The workspace keeps the gates, the old state and the reset gate's operand

constexpr int64_t kGruKept = 5;

template <typename T>
void gru(const Operands& operands, const at::Tensor& hy, const at::Tensor& workspace) {
  using Real = at::opmath_type<T>;
  const Gates<T> gates = operands.gates<T>();
  const T* const state = operands.state.const_data_ptr<T>();
  T* const to = hy.mutable_data_ptr<T>();
  T* const kept = workspace.mutable_data_ptr<T>();
  for_each(hy.numel(), [=] __device__(int64_t i) {
    const Real reset = sigmoid(gates.sum(i, 0));
    const Real update = sigmoid(gates.sum(i, 1));
    const Real hidden = gates.hidden(i, 2);
    const Real fresh = std::tanh(gates.input(i, 2) + reset * hidden);
    const Real h = static_cast<Real>(state[i]);
    to[i] = static_cast<T>(fresh + update * (h - fresh));
    const int64_t at = i / gates.width * gates.width * kGruKept + i % gates.width;
    kept[at] = static_cast<T>(reset);
    kept[at + gates.width] = static_cast<T>(update);
    kept[at + 2 * gates.width] = static_cast<T>(fresh);
    kept[at + 3 * gates.width] = static_cast<T>(h);
    kept[at + 4 * gates.width] = static_cast<T>(hidden);
  });
}

template <typename T>
void gru_gradients(
    const at::Tensor& grad_hy, const at::Tensor& workspace, const at::Tensor& grad_input, const at::Tensor& grad_hidden,
    const at::Tensor& grad_hx) {
  using Real = at::opmath_type<T>;
  const T* const gradient = grad_hy.const_data_ptr<T>();
  const T* const kept = workspace.const_data_ptr<T>();
  T* const to_input = grad_input.mutable_data_ptr<T>();
  T* const to_hidden = grad_hidden.mutable_data_ptr<T>();
  T* const to_state = grad_hx.mutable_data_ptr<T>();
  const int64_t width = grad_hy.size(1);
  for_each(grad_hy.numel(), [=] __device__(int64_t i) {
    const int64_t from = i / width * width * kGruKept + i % width;
    const Real reset = static_cast<Real>(kept[from]), update = static_cast<Real>(kept[from + width]);
    const Real fresh = static_cast<Real>(kept[from + 2 * width]), h = static_cast<Real>(kept[from + 3 * width]);
    const Real hidden = static_cast<Real>(kept[from + 4 * width]);
    const Real g = static_cast<Real>(gradient[i]);
    const Real of_fresh = g * (Real(1) - update) * (Real(1) - fresh * fresh);
    const Real of_update = g * (h - fresh) * update * (Real(1) - update);
    const Real of_reset = of_fresh * hidden * reset * (Real(1) - reset);
    const int64_t at = i / width * width * 3 + i % width;
    to_input[at] = to_hidden[at] = static_cast<T>(of_reset);
    to_input[at + width] = to_hidden[at + width] = static_cast<T>(of_update);
    to_input[at + 2 * width] = static_cast<T>(of_fresh);
    to_hidden[at + 2 * width] = static_cast<T>(of_fresh * reset);
    to_state[i] = static_cast<T>(g * update);
  });
}

} // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> _thnn_fused_lstm_cell(
    const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
    const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias) {
  const Operands operands(input_gates, hidden_gates, input_bias, hidden_bias, cx, /*gates=*/4);
  const at::Tensor hy = aten::empty_like(operands.state);
  const at::Tensor cy = aten::empty_like(operands.state);
  const at::Tensor workspace = aten::empty_like(operands.input);
  MUSA_DISPATCH(input_gates.scalar_type(), "_thnn_fused_lstm_cell", (MUSA_FLOATING), {
    lstm<scalar_t>(operands, hy, cy, workspace);
  });
  return {hy, cy, workspace};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> _thnn_fused_lstm_cell_backward_impl(
    const std::optional<at::Tensor>& grad_hy, const std::optional<at::Tensor>& grad_cy, const at::Tensor& cx,
    const at::Tensor& cy, const at::Tensor& workspace, bool has_bias) {
  const char* const op = "_thnn_fused_lstm_cell_backward_impl";
  check_dims(op, "cx", cx, 2);
  check_shape(op, "cy", cy, cx.sizes());
  check_shape(op, "grad_hy", grad_hy, cx.sizes());
  check_shape(op, "grad_cy", grad_cy, cx.sizes());
  check_shape(op, "workspace", workspace, {cx.size(0), 4 * cx.size(1)});
  const at::Tensor gh = dense_as(grad_hy, cx.scalar_type());
  const at::Tensor gc = dense_as(grad_cy, cx.scalar_type());
  if (!gh.defined() && !gc.defined()) {
    return {};
  }
  const at::Tensor before = cx.contiguous(), after = cy.contiguous(), kept = workspace.contiguous();
  const at::Tensor grad_gates = aten::empty_like(kept);
  const at::Tensor grad_cx = aten::empty_like(before);
  MUSA_DISPATCH(cx.scalar_type(), "_thnn_fused_lstm_cell_backward", (MUSA_FLOATING), {
    lstm_gradients<scalar_t>(gh, gc, before, after, kept, grad_gates, grad_cx);
  });
  return {grad_gates, grad_cx, has_bias ? grad_gates.sum(0, /*keepdim=*/false) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> _thnn_fused_gru_cell(
    const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& hx,
    const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias) {
  const Operands operands(input_gates, hidden_gates, input_bias, hidden_bias, hx, /*gates=*/3);
  const at::Tensor hy = aten::empty_like(operands.state);
  const at::Tensor workspace = aten::empty({hx.size(0), hx.size(1) * kGruKept}, hx.options());
  MUSA_DISPATCH(
      input_gates.scalar_type(), "_thnn_fused_gru_cell", (MUSA_FLOATING), { gru<scalar_t>(operands, hy, workspace); });
  return {hy, workspace};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> _thnn_fused_gru_cell_backward(
    const at::Tensor& grad_hy, const at::Tensor& workspace, bool has_bias) {
  const char* const op = "_thnn_fused_gru_cell_backward";
  check_dims(op, "grad_hy", grad_hy, 2);
  check_shape(op, "workspace", workspace, {grad_hy.size(0), kGruKept * grad_hy.size(1)});
  const at::Tensor g = grad_hy.contiguous();
  const at::Tensor kept = workspace.contiguous();
  const at::Tensor grad_input = aten::empty({g.size(0), g.size(1) * 3}, g.options());
  const at::Tensor grad_hidden = aten::empty_like(grad_input);
  const at::Tensor grad_hx = aten::empty_like(g);
  MUSA_DISPATCH(g.scalar_type(), "_thnn_fused_gru_cell_backward", (MUSA_FLOATING), {
    gru_gradients<scalar_t>(g, kept, grad_input, grad_hidden, grad_hx);
  });
  if (!has_bias) {
    return {grad_input, grad_hidden, grad_hx, at::Tensor(), at::Tensor()};
  }
  return {
      grad_input, grad_hidden, grad_hx, grad_input.sum(0, /*keepdim=*/false), grad_hidden.sum(0, /*keepdim=*/false)};
}

} // namespace musa_ops_ported
