// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "recurrent.h"

#include "in_place/host_scope.h"

#include <ATen/Context.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/mkldnn_rnn_layer_backward.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <musa_runtime/graph_capture.h>

#include <algorithm>

namespace musa_ops_host {
namespace {

using at::Tensor;
using at::TensorList;
using OptionalTensor = std::optional<Tensor>;

constexpr int64_t kLstm = 2; // torch's number of it (native/RNN.h)

bool has_sizes(const Tensor& tensor, at::IntArrayRef sizes) {
  return tensor.defined() && tensor.sizes() == sizes && tensor.scalar_type() == at::kFloat;
}

// input (T, B, I) without padding; state h and c (B, H); weights (4H, I), (4H, H) and two biases (4H). Other calls, invalid
// ones among them, are left to the runtime's composition.
bool is_for_onednn(
    const Tensor& input, TensorList state, TensorList weights, at::IntArrayRef batch_sizes, int64_t mode,
    bool has_biases) {
  if (mode != kLstm || input.dim() != 3 || input.scalar_type() != at::kFloat || state.size() != 2 ||
      weights.size() != (has_biases ? 4U : 2U) || !at::hasMKLDNN() || !at::globalContext().userEnabledMkldnn() ||
      !state[0].defined() || state[0].dim() != 2) {
    return false;
  }
  const int64_t batch = input.size(1);
  const int64_t hidden = state[0].size(1);
  return static_cast<int64_t>(batch_sizes.size()) == input.size(0) &&
      std::all_of(batch_sizes.begin(), batch_sizes.end(), [batch](int64_t each) { return each == batch; }) &&
      has_sizes(state[0], {batch, hidden}) && has_sizes(state[1], {batch, hidden}) &&
      has_sizes(weights[0], {4 * hidden, input.size(2)}) && has_sizes(weights[1], {4 * hidden, hidden}) &&
      std::all_of(weights.begin() + 2, weights.end(), [hidden](const Tensor& bias) {
           return has_sizes(bias, {4 * hidden});
         });
}

// The workspace of oneDNN, whose size only oneDNN knows, and copies of the results.
bool is_kept_by_onednn(const Tensor& input, TensorList state, TensorList kept) {
  return kept.size() == 4 && kept[0].scalar_type() == at::kByte && kept[1].dim() == 3 &&
      kept[1].sizes().slice(0, 2) == input.sizes().slice(0, 2) && kept[1].size(2) == state[0].size(1) &&
      kept[2].sizes() == state[0].sizes() && kept[3].sizes() == state[1].sizes();
}

std::array<Tensor, 2> biases_of(const std::vector<Tensor>& weights) {
  if (weights.size() == 4) {
    return {weights[2], weights[3]};
  }
  const Tensor none = at::zeros({weights[0].size(0)}, weights[0].options());
  return {none, none};
}

} // namespace

// A graph records the composition instead: one host call has no meta kernel that gives its shapes.
bool recurrent_layer_is_served(
    const Tensor& input, TensorList state, TensorList weights, at::IntArrayRef batch_sizes, int64_t mode,
    bool has_biases, bool /*reverse*/, bool /*keep*/) {
  return is_for_onednn(input, state, weights, batch_sizes, mode, has_biases) && !musa_runtime::capturing();
}

bool recurrent_layer_backward_is_served(
    const OptionalTensor& grad_output, const OptionalTensor& grad_hidden, const OptionalTensor& grad_cell,
    const Tensor& input, TensorList state, TensorList weights, TensorList kept, at::IntArrayRef batch_sizes,
    int64_t mode, bool has_biases, bool /*reverse*/, std::array<bool, 3> /*wanted*/) {
  const auto is_for = [](const OptionalTensor& gradient, at::IntArrayRef sizes) {
    return !gradient.has_value() || !gradient->defined() || has_sizes(*gradient, sizes);
  };
  return is_for_onednn(input, state, weights, batch_sizes, mode, has_biases) && is_kept_by_onednn(input, state, kept) &&
      is_for(grad_output, {input.size(0), input.size(1), state[0].size(1)}) && is_for(grad_hidden, state[0].sizes()) &&
      is_for(grad_cell, state[1].sizes()) && !musa_runtime::capturing();
}

RecurrentTensors recurrent_layer(
    const Tensor& input, TensorList state, TensorList weights, at::IntArrayRef /*batch_sizes*/, int64_t mode,
    bool has_biases, bool reverse, bool keep) {
  HostScope scope;
  scope.set_name("torch_musa::_recurrent_layer");
  const Tensor host_input = scope.host(input);
  const std::vector<Tensor> host_state = scope.host(state);
  const std::vector<Tensor> host_weights = scope.host(weights);
  scope.enter();
  const auto [input_bias, hidden_bias] = biases_of(host_weights);
  const c10::AutoGradMode keeps(keep); // the kernel returns its workspace only in grad mode
  auto [output, hidden, cell, workspace] = at::mkldnn_rnn_layer(
      host_input.contiguous(), host_weights[0], host_weights[1], input_bias, hidden_bias, host_state[0].contiguous(),
      host_state[1].contiguous(), reverse, {}, mode, host_state[0].size(1), /*num_layers=*/1, has_biases,
      /*bidirectional=*/false, /*batch_first=*/false, /*train=*/keep);
  RecurrentTensors result{std::move(output), {hidden.view_as(host_state[0]), cell.view_as(host_state[1])}, {}};
  if (keep) {
    // Copies, because programs may change the results in place.
    const auto& [kept_output, kept_state, none] = result;
    std::get<2>(result) = {std::move(workspace), kept_output.clone(), kept_state[0].clone(), kept_state[1].clone()};
  }
  return scope.device(std::move(result));
}

RecurrentTensors recurrent_layer_backward(
    const OptionalTensor& grad_output, const OptionalTensor& grad_hidden, const OptionalTensor& grad_cell,
    const Tensor& input, TensorList state, TensorList weights, TensorList kept, at::IntArrayRef /*batch_sizes*/,
    int64_t mode, bool has_biases, bool reverse, std::array<bool, 3> /*wanted*/) {
  HostScope scope;
  scope.set_name("torch_musa::_recurrent_layer_backward");
  const Tensor host_input = scope.host(input);
  const std::vector<Tensor> host_state = scope.host(state);
  const std::vector<Tensor> host_weights = scope.host(weights);
  const std::vector<Tensor> host_kept = scope.host(kept);
  const auto dense = [&scope](const OptionalTensor& gradient) {
    return gradient.has_value() && gradient->defined() ? OptionalTensor(scope.host(*gradient)) : OptionalTensor();
  };
  OptionalTensor of_results[] = {dense(grad_output), dense(grad_hidden), dense(grad_cell)};
  scope.enter();
  for (OptionalTensor& gradient : of_results) {
    if (gradient.has_value()) {
      gradient = gradient->contiguous();
    }
  }
  const auto [input_bias, hidden_bias] = biases_of(host_weights);
  auto [of_input, of_input_weight, of_hidden_weight, of_input_bias, of_hidden_bias, of_hidden, of_cell] =
      at::mkldnn_rnn_layer_backward(
          host_input.contiguous(), host_weights[0], host_weights[1], input_bias, hidden_bias,
          host_state[0].contiguous(), host_state[1].contiguous(), host_kept[1], host_kept[2], host_kept[3],
          of_results[0], of_results[1], of_results[2], reverse, mode, host_state[0].size(1), /*num_layers=*/1,
          has_biases, /*train=*/true, /*bidirectional=*/false, {}, /*batch_first=*/false, host_kept[0]);
  std::vector<Tensor> of_weights{std::move(of_input_weight), std::move(of_hidden_weight)};
  if (has_biases) {
    of_weights.push_back(std::move(of_input_bias));
    of_weights.push_back(of_hidden_bias.is_same(of_weights[2]) ? of_hidden_bias.clone() : of_hidden_bias);
  }
  return scope.device(
      RecurrentTensors{
          std::move(of_input),
          {of_hidden.view_as(host_state[0]), of_cell.view_as(host_state[1])},
          std::move(of_weights)});
}

} // namespace musa_ops_host
