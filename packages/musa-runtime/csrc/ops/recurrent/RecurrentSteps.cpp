// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ops/recurrent/RecurrentSteps.h>

#include <ATen/DimVector.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_thnn_fused_gru_cell.h>
#include <ATen/ops/_thnn_fused_gru_cell_backward.h>
#include <ATen/ops/_thnn_fused_lstm_cell.h>
#include <ATen/ops/_thnn_fused_lstm_cell_backward_impl.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/zeros_like.h>
#include <musa_runtime/argument_checks.h>

#include <algorithm>
#include <numeric>

namespace musa_runtime {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

constexpr size_t kKeptByLstm = 4; // gates, h and c before each step, c after it; with a projection also h before that
constexpr size_t kKeptByGru = 2; // the cell's workspace, h before each step
constexpr size_t kKeptByRnn = 2; // h after each step, h before it

bool is_projected(const RecurrentLayer& layer) { return layer.weights.size() > (layer.has_biases ? 4U : 2U); }

Tensor product(const Tensor& addend, const Tensor& a, const Tensor& b) {
  return addend.defined() ? at::addmm(addend, a, b) : at::mm(a, b);
}

// Rows of all steps as one tensor, and back. Step t has batch_sizes[t] rows.
Tensor joined(const Tensors& steps) { return at::cat(steps, 0); }
Tensors split(const Tensor& rows, const RecurrentLayer& layer) { return rows.split_with_sizes(layer.batch_sizes, 0); }
Tensor as_rows(const Tensor& tensor) { return tensor.dim() == 3 ? tensor.flatten(0, 1) : tensor; }
Tensor shaped_as_input(const Tensor& rows, const RecurrentLayer& layer) {
  return layer.input.dim() == 3 ? rows.view({layer.input.size(0), layer.input.size(1), rows.size(1)}) : rows;
}

// The rows of a state whose sequences take part in a step. The other sequences have ended or, in reverse, have not begun,
// and keep their rows.
Tensor active(const Tensor& state, int64_t count) { return count == state.size(0) ? state : state.narrow(0, 0, count); }
Tensor updated(Tensor rows, const Tensor& state) {
  const int64_t count = rows.size(0);
  return count == state.size(0) ? std::move(rows)
                                : at::cat({std::move(rows), state.narrow(0, count, state.size(0) - count)}, 0);
}

size_t step_at(const RecurrentLayer& layer, size_t index) {
  return layer.reverse ? layer.batch_sizes.size() - 1 - index : index;
}

} // namespace

void check_layer(const RecurrentLayer& layer) {
  const char* const op = "torch_musa::_recurrent_layer";
  const bool lstm = layer.mode == RecurrentMode::Lstm;
  const int64_t gates = lstm ? 4 : layer.mode == RecurrentMode::Gru ? 3 : 1;
  const size_t plain = layer.has_biases ? 4 : 2;
  TORCH_CHECK(
      layer.mode >= RecurrentMode::Relu && layer.mode <= RecurrentMode::Gru, op, ": unknown mode ",
      static_cast<int64_t>(layer.mode));
  TORCH_CHECK(
      layer.state.size() == (lstm ? 2 : 1) &&
          (layer.weights.size() == plain || (lstm && layer.weights.size() == plain + 1)),
      op, ": expected ", lstm ? 2 : 1, " states and ", plain, " weights, got ", layer.state.size(), " and ",
      layer.weights.size());
  TORCH_CHECK(
      !layer.batch_sizes.empty() && layer.batch_sizes.back() > 0 &&
          std::is_sorted(layer.batch_sizes.rbegin(), layer.batch_sizes.rend()),
      op, ": expected batch_sizes that are positive and do not increase, got ", at::IntArrayRef(layer.batch_sizes));
  TORCH_CHECK(
      layer.input.dim() == 2 || layer.input.dim() == 3, op, ": expected an input of 2 or 3 dimensions, got shape ",
      layer.input.sizes());
  const int64_t batch = layer.batch_sizes.front();
  const int64_t rows = std::accumulate(layer.batch_sizes.begin(), layer.batch_sizes.end(), int64_t{0});
  const int64_t width = layer.input.size(-1);
  const auto steps = static_cast<int64_t>(layer.batch_sizes.size());
  check_shape(
      op, "input", layer.input,
      layer.input.dim() == 3 ? at::DimVector{steps, batch, width} : at::DimVector{rows, width});
  TORCH_CHECK(
      layer.input.dim() == 2 || layer.batch_sizes.back() == batch, op,
      ": expected one batch size for an input of 3 dimensions, got ", at::IntArrayRef(layer.batch_sizes));
  check_dims(op, "hidden state", layer.state[0], 2);
  check_dims(op, "last state", layer.state.back(), 2);
  const int64_t hidden = layer.state[0].size(1);
  const int64_t cells = layer.state.back().size(1);
  check_shape(op, "hidden state", layer.state[0], {batch, hidden});
  check_shape(op, "cell state", layer.state.back(), {batch, cells});
  check_shape(op, "weight of the input", layer.weights[0], {gates * cells, width});
  check_shape(op, "weight of the hidden state", layer.weights[1], {gates * cells, hidden});
  if (layer.has_biases) {
    check_shape(op, "bias of the input", layer.weights[2], {gates * cells});
    check_shape(op, "bias of the hidden state", layer.weights[3], {gates * cells});
  }
  if (is_projected(layer)) {
    check_shape(op, "projection", layer.weights.back(), {hidden, cells});
  } else {
    TORCH_CHECK(
        hidden == cells, op, ": expected states of one size without a projection, got ", hidden, " and ", cells);
  }
}

void check_gradients(const RecurrentLayer& layer, const RecurrentGradients& gradients) {
  const char* const op = "torch_musa::_recurrent_layer_backward";
  at::DimVector of_output(layer.input.sizes());
  of_output.back() = layer.state[0].size(1);
  check_shape(op, "grad_output", gradients.output, of_output);
  check_shape(op, "grad_hidden", gradients.state[0], layer.state[0].sizes());
  check_shape(op, "grad_cell", gradients.state[1], layer.state.back().sizes());
}

bool is_kept_by_steps(const RecurrentLayer& layer, const Tensors& kept) {
  const size_t expected = layer.mode == RecurrentMode::Lstm ? kKeptByLstm + (is_projected(layer) ? 1 : 0)
      : layer.mode == RecurrentMode::Gru                    ? kKeptByGru
                                                            : kKeptByRnn;
  if (kept.size() != expected || kept[0].scalar_type() != layer.input.scalar_type()) {
    return false;
  }
  const int64_t rows = std::accumulate(layer.batch_sizes.begin(), layer.batch_sizes.end(), int64_t{0});
  const int64_t hidden = layer.state[0].size(1);
  const int64_t cells = layer.state.back().size(1);
  const int64_t of_workspace = layer.mode == RecurrentMode::Lstm ? 4 : layer.mode == RecurrentMode::Gru ? 5 : 1;
  const auto has = [rows](const Tensor& tensor, int64_t width) {
    return tensor.sizes() == at::IntArrayRef({rows, width});
  };
  return has(kept[0], of_workspace * cells) && has(kept[1], hidden) &&
      std::all_of(kept.begin() + 2, kept.end(), [&](const Tensor& tensor) { return has(tensor, cells); });
}

RecurrentResult recurrent_steps(const RecurrentLayer& layer, bool keep) {
  const size_t steps = layer.batch_sizes.size();
  const bool gated = layer.mode == RecurrentMode::Lstm || layer.mode == RecurrentMode::Gru;
  const bool projected = is_projected(layer);
  const Tensor input_bias = layer.has_biases ? layer.weights[2] : Tensor();
  const Tensor hidden_bias = layer.has_biases ? layer.weights[3] : Tensor();
  const Tensor hidden_weight = layer.weights[1].t();
  const Tensor projection = projected ? layer.weights.back().t() : Tensor();
  // The ungated cell only adds the two products, so the first one gets both biases.
  const Tensor bias = !gated && layer.has_biases ? input_bias + hidden_bias : input_bias;
  const Tensors from_input = split(product(bias, as_rows(layer.input), layer.weights[0].t()), layer);

  Tensors outputs(steps), workspaces(steps), before(steps), cells_before(steps), cells(steps), unprojected(steps);
  Tensor hidden = layer.state[0];
  Tensor cell_state = layer.mode == RecurrentMode::Lstm ? layer.state[1] : Tensor();
  for (size_t index = 0; index < steps; ++index) {
    const size_t t = step_at(layer, index);
    const int64_t count = layer.batch_sizes[t];
    before[t] = active(hidden, count);
    if (layer.mode == RecurrentMode::Lstm) {
      cells_before[t] = active(cell_state, count);
      std::tie(outputs[t], cells[t], workspaces[t]) =
          at::_thnn_fused_lstm_cell(from_input[t], product(hidden_bias, before[t], hidden_weight), cells_before[t]);
      cell_state = updated(cells[t], cell_state);
      if (projected) {
        unprojected[t] = std::move(outputs[t]);
        outputs[t] = at::mm(unprojected[t], projection);
      }
    } else if (layer.mode == RecurrentMode::Gru) {
      std::tie(outputs[t], workspaces[t]) =
          at::_thnn_fused_gru_cell(from_input[t], product(hidden_bias, before[t], hidden_weight), before[t]);
    } else {
      const Tensor sum = at::addmm(from_input[t], before[t], hidden_weight);
      outputs[t] = layer.mode == RecurrentMode::Tanh ? at::tanh(sum) : at::relu(sum);
    }
    hidden = updated(outputs[t], hidden);
  }

  RecurrentResult result;
  result.output = shaped_as_input(joined(outputs), layer);
  result.state.push_back(std::move(hidden));
  if (cell_state.defined()) {
    result.state.push_back(std::move(cell_state));
  }
  if (keep) {
    result.kept.push_back(joined(gated ? workspaces : outputs));
    result.kept.push_back(joined(before));
    if (layer.mode == RecurrentMode::Lstm) {
      result.kept.push_back(joined(cells_before));
      result.kept.push_back(joined(cells));
      if (projected) {
        result.kept.push_back(joined(unprojected));
      }
    }
  }
  return result;
}

RecurrentInputGradients recurrent_steps_backward(
    const RecurrentLayer& layer, const Tensors& kept, const RecurrentGradients& gradients, std::array<bool, 3> wanted) {
  const size_t steps = layer.batch_sizes.size();
  const bool lstm = layer.mode == RecurrentMode::Lstm;
  const bool gru = layer.mode == RecurrentMode::Gru;
  const bool projected = is_projected(layer);
  const Tensor& hidden_weight = layer.weights[1];
  const Tensor& before = kept[1];

  const Tensors of_outputs = gradients.output.defined() ? split(as_rows(gradients.output), layer) : Tensors(steps);
  const Tensors workspaces = split(kept[0], layer); // of the ungated cell, its output
  const Tensors cells_before = lstm ? split(kept[2], layer) : Tensors();
  const Tensors cells = lstm ? split(kept[3], layer) : Tensors();

  const auto or_zeros = [](const Tensor& gradient, const Tensor& like) {
    return gradient.defined() ? gradient : at::zeros_like(like);
  };
  Tensor of_hidden = or_zeros(gradients.state[0], layer.state[0]);
  Tensor of_cell = lstm ? or_zeros(gradients.state[1], layer.state[1]) : Tensor();
  Tensors of_input_gates(steps), of_hidden_gates(steps), of_projected(steps);
  // If every step has the whole batch, the product that gives the state's gradient adds the earlier output's.
  const bool uniform = layer.batch_sizes.front() == layer.batch_sizes.back();
  const bool added_by_product = uniform && gradients.output.defined();

  for (size_t index = steps; index-- > 0;) {
    const size_t t = step_at(layer, index);
    const int64_t count = layer.batch_sizes[t];
    Tensor of_output = active(of_hidden, count);
    if (of_outputs[t].defined() && (!added_by_product || index + 1 == steps)) {
      of_output = of_output + of_outputs[t];
    }
    Tensor direct; // the gradient of the state before the step, without the part through the gates
    if (lstm) {
      if (projected) {
        of_projected[t] = of_output;
        of_output = at::mm(of_output, layer.weights.back());
      }
      const Tensor of_cell_after = active(of_cell, count);
      auto [of_gates, of_cell_before, of_bias] = at::_thnn_fused_lstm_cell_backward_impl(
          of_output, of_cell_after, cells_before[t], cells[t], workspaces[t], false);
      of_cell = updated(std::move(of_cell_before), of_cell);
      of_input_gates[t] = std::move(of_gates);
    } else if (gru) {
      auto of_cell_inputs = at::_thnn_fused_gru_cell_backward(of_output, workspaces[t], false);
      of_input_gates[t] = std::get<0>(of_cell_inputs);
      of_hidden_gates[t] = std::get<1>(of_cell_inputs);
      direct = std::get<2>(of_cell_inputs);
    } else {
      of_input_gates[t] = layer.mode == RecurrentMode::Tanh ? at::tanh_backward(of_output, workspaces[t])
                                                            : at::threshold_backward(of_output, workspaces[t], 0);
    }
    const Tensor& of_gates = gru ? of_hidden_gates[t] : of_input_gates[t];
    if (added_by_product && index > 0) {
      const Tensor& earlier = of_outputs[step_at(layer, index - 1)];
      direct = direct.defined() ? direct.add_(earlier) : earlier;
    }
    of_hidden = updated(product(direct, of_gates, hidden_weight), of_hidden);
  }

  RecurrentInputGradients of;
  of.state.resize(layer.state.size());
  of.weights.resize(layer.weights.size());
  const Tensor of_gates = joined(of_input_gates);
  if (wanted[0]) {
    of.input = shaped_as_input(at::mm(of_gates, layer.weights[0]), layer);
  }
  if (wanted[1]) {
    of.state[0] = std::move(of_hidden);
    if (lstm) {
      of.state[1] = std::move(of_cell);
    }
  }
  if (wanted[2]) {
    const Tensor of_products = gru ? joined(of_hidden_gates) : of_gates;
    of.weights[0] = at::mm(of_gates.t(), as_rows(layer.input));
    of.weights[1] = at::mm(of_products.t(), before);
    if (layer.has_biases) {
      of.weights[2] = of_gates.sum(0);
      of.weights[3] = gru ? of_products.sum(0) : of.weights[2].clone();
    }
    if (projected) {
      of.weights.back() = at::mm(joined(of_projected).t(), kept[kKeptByLstm]);
    }
  }
  return of;
}

} // namespace musa_runtime
