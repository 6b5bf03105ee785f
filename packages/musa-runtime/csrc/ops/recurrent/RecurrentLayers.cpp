// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_compositeimplicitautograd_dispatch.h>
#include <ATen/ops/lstm_compositeimplicitautograd_dispatch.h>
#include <ATen/ops/rnn_relu_compositeimplicitautograd_dispatch.h>
#include <ATen/ops/rnn_tanh_compositeimplicitautograd_dispatch.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/PythonDispatcherTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <musa_runtime/op_pack.h>
#include <ops/recurrent/RecurrentSteps.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <numeric>

// nn.RNN, nn.LSTM and nn.GRU. torch composes them from cells and products for each step; here a layer in one direction is
// one operator with one gradient, which packs may serve:
//
//   torch_musa::_recurrent_layer           forward pass of one layer in one direction (RecurrentSteps.h names the shapes)
//   torch_musa::_recurrent_layer_backward  its gradients
//
// docs/design/recurrent.md lists the calls that torch's composition keeps.

namespace musa_runtime {
namespace {

using at::Tensor;
using at::TensorList;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Tensors = std::vector<Tensor>;
using OptionalTensor = std::optional<Tensor>;

// ---- The operators and their providers

using LayerForward = std::tuple<Tensor, Tensors, Tensors>(
    const Tensor& input, TensorList state, TensorList weights, at::IntArrayRef batch_sizes, int64_t mode,
    bool has_biases, bool reverse, bool keep);
using Backward = std::tuple<Tensor, Tensors, Tensors>(
    const OptionalTensor& grad_output, const OptionalTensor& grad_hidden, const OptionalTensor& grad_cell,
    const Tensor& input, TensorList state, TensorList weights, TensorList kept, at::IntArrayRef batch_sizes,
    int64_t mode, bool has_biases, bool reverse, std::array<bool, 3> wanted);

TORCH_LIBRARY_FRAGMENT(torch_musa, m) {
  m.def(
      "_recurrent_layer(Tensor input, Tensor[] state, Tensor[] weights, int[] batch_sizes, int mode, bool has_biases, "
      "bool reverse, bool keep) -> (Tensor, Tensor[], Tensor[])");
  m.def(
      "_recurrent_layer_backward(Tensor? grad_output, Tensor? grad_hidden, Tensor? grad_cell, Tensor input, Tensor[] state, "
      "Tensor[] weights, Tensor[] kept, int[] batch_sizes, int mode, bool has_biases, bool reverse, "
      "bool[3] wanted) -> (Tensor, Tensor[], Tensor[])");
}

RecurrentLayer layer_of(
    const Tensor& input, TensorList state, TensorList weights, at::IntArrayRef batch_sizes, int64_t mode,
    bool has_biases, bool reverse) {
  RecurrentLayer layer{input,      state.vec(), weights.vec(), batch_sizes.vec(), static_cast<RecurrentMode>(mode),
                       has_biases, reverse};
  check_layer(layer);
  return layer;
}

RecurrentGradients gradients_of(
    const OptionalTensor& output, const OptionalTensor& hidden, const OptionalTensor& cell) {
  return {output.value_or(Tensor()), {hidden.value_or(Tensor()), cell.value_or(Tensor())}};
}

std::tuple<Tensor, Tensors, Tensors> as_tuple(RecurrentResult result) {
  return {std::move(result.output), std::move(result.state), std::move(result.kept)};
}

std::tuple<Tensor, Tensors, Tensors> as_tuple(RecurrentInputGradients of) {
  return {std::move(of.input), std::move(of.state), std::move(of.weights)};
}

RecurrentInputGradients backward_by_steps(
    const RecurrentLayer& layer, Tensors kept, const RecurrentGradients& gradients, std::array<bool, 3> wanted) {
  if (!is_kept_by_steps(layer, kept)) { // another provider served the forward pass
    kept = recurrent_steps(layer, /*keep=*/true).kept;
  }
  return recurrent_steps_backward(layer, kept, gradients, wanted);
}

std::tuple<Tensor, Tensors, Tensors> forward_on_device(
    const Tensor& input, TensorList state, TensorList weights, at::IntArrayRef batch_sizes, int64_t mode,
    bool has_biases, bool reverse, bool keep) {
  return as_tuple(recurrent_steps(layer_of(input, state, weights, batch_sizes, mode, has_biases, reverse), keep));
}

std::tuple<Tensor, Tensors, Tensors> backward_on_device(
    const OptionalTensor& grad_output, const OptionalTensor& grad_hidden, const OptionalTensor& grad_cell,
    const Tensor& input, TensorList state, TensorList weights, TensorList kept, at::IntArrayRef batch_sizes,
    int64_t mode, bool has_biases, bool reverse, std::array<bool, 3> wanted) {
  const RecurrentLayer layer = layer_of(input, state, weights, batch_sizes, mode, has_biases, reverse);
  const RecurrentGradients gradients = gradients_of(grad_output, grad_hidden, grad_cell);
  check_gradients(layer, gradients);
  return as_tuple(backward_by_steps(layer, kept.vec(), gradients, wanted));
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl("torch_musa::_recurrent_layer", TORCH_FN(forward_on_device))
      .impl("torch_musa::_recurrent_layer_backward", TORCH_FN(backward_on_device));
}

template <typename Signature>
c10::TypedOperatorHandle<Signature> find(const char* op) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(op, "").typed<Signature>();
}

RecurrentResult run(const RecurrentLayer& layer, bool keep) {
  static const auto op = find<LayerForward>("torch_musa::_recurrent_layer");
  auto [output, state, kept] = op.call(
      layer.input, layer.state, layer.weights, layer.batch_sizes, static_cast<int64_t>(layer.mode), layer.has_biases,
      layer.reverse, keep);
  return {std::move(output), std::move(state), std::move(kept)};
}

RecurrentInputGradients run_backward(
    const RecurrentLayer& layer, const Tensors& kept, const RecurrentGradients& gradients, std::array<bool, 3> wanted) {
  static const auto op = find<Backward>("torch_musa::_recurrent_layer_backward");
  const auto given = [](const Tensor& gradient) {
    return gradient.defined() ? OptionalTensor(gradient) : OptionalTensor();
  };
  auto [of_input, of_state, of_weights] = op.call(
      given(gradients.output), given(gradients.state[0]), given(gradients.state[1]), layer.input, layer.state,
      layer.weights, kept, layer.batch_sizes, static_cast<int64_t>(layer.mode), layer.has_biases, layer.reverse,
      wanted);
  return {std::move(of_input), std::move(of_state), std::move(of_weights)};
}

// ---- The gradient

// Below autograd and autocast: the operands already have their dtype.
struct BelowAutograd {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard below_autocast{c10::DispatchKey::AutocastPrivateUse1};
};

variable_list take(const variable_list& from, size_t& next, size_t count) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(next);
  next += count;
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// First-order gradients use the operator; with create_graph=True, the steps are differentiated.
class RecurrentLayerGradient : public torch::autograd::Function<RecurrentLayerGradient> {
 public:
  static variable_list forward(
      AutogradContext* context, const Tensor& input, TensorList operands, const RecurrentLayer& layer) {
    const BelowAutograd below;
    const RecurrentResult result = run(layer, /*keep=*/true);
    variable_list saved{input};
    saved.insert(saved.end(), operands.begin(), operands.end());
    saved.insert(saved.end(), result.kept.begin(), result.kept.end());
    context->save_for_backward(std::move(saved));
    context->set_materialize_grads(false);
    context->saved_data["states"] = static_cast<int64_t>(layer.state.size());
    context->saved_data["weights"] = static_cast<int64_t>(layer.weights.size());
    context->saved_data["batch_sizes"] = layer.batch_sizes;
    context->saved_data["mode"] = static_cast<int64_t>(layer.mode);
    context->saved_data["has_biases"] = layer.has_biases;
    context->saved_data["reverse"] = layer.reverse;
    variable_list results{result.output};
    results.insert(results.end(), result.state.begin(), result.state.end());
    return results;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    auto& data = context->saved_data;
    const auto states = static_cast<size_t>(data["states"].toInt());
    const auto weights = static_cast<size_t>(data["weights"].toInt());
    const size_t operands = 1 + states + weights;
    const bool any = std::any_of(grads.begin(), grads.end(), [](const Tensor& each) { return each.defined(); });
    if (!any) {
      return variable_list(operands + 1);
    }
    const variable_list saved = context->get_saved_variables();
    RecurrentLayer layer{
        saved[0],
        {},
        {},
        data["batch_sizes"].toIntVector(),
        static_cast<RecurrentMode>(data["mode"].toInt()),
        data["has_biases"].toBool(),
        data["reverse"].toBool()};
    size_t next = 1;
    layer.state = take(saved, next, states);
    layer.weights = take(saved, next, weights);
    if (at::GradMode::is_enabled()) {
      return differentiable(std::move(layer), grads);
    }
    const Tensors kept = take(saved, next, saved.size() - next);
    RecurrentGradients gradients{grads[0], {grads[1], states > 1 ? grads[2] : Tensor()}};

    const auto wanted = [context](size_t begin, size_t end) {
      while (begin < end && !context->needs_input_grad(begin)) {
        ++begin;
      }
      return begin < end;
    };
    const BelowAutograd below;
    RecurrentInputGradients of =
        run_backward(layer, kept, gradients, {wanted(0, 1), wanted(1, 1 + states), wanted(1 + states, operands)});
    variable_list results{std::move(of.input)};
    results.insert(results.end(), of.state.begin(), of.state.end());
    results.insert(results.end(), of.weights.begin(), of.weights.end());
    results.emplace_back(); // of the argument that is not a tensor
    return results;
  }

 private:
  // Differentiates the steps, which consist of differentiable operators, with respect to views of the operands: one tensor
  // may be several operands.
  static variable_list differentiable(RecurrentLayer layer, const variable_list& grads) {
    const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::DispatchKey::AutocastPrivateUse1);
    variable_list operands;
    const auto viewed = [&operands](Tensor& operand) {
      operand = operand.view_as(operand);
      operands.push_back(operand);
    };
    viewed(layer.input);
    std::for_each(layer.state.begin(), layer.state.end(), viewed);
    std::for_each(layer.weights.begin(), layer.weights.end(), viewed);

    const RecurrentResult result = recurrent_steps(layer, /*keep=*/false);
    variable_list outputs{result.output}, given, defined;
    outputs.insert(outputs.end(), result.state.begin(), result.state.end());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (grads[i].defined() && outputs[i].requires_grad()) {
        defined.push_back(outputs[i]);
        given.push_back(grads[i]);
      }
    }
    variable_list sources;
    for (const Tensor& operand : operands) {
      if (operand.requires_grad()) {
        sources.push_back(operand);
      }
    }
    variable_list of_sources = torch::autograd::grad(
        defined, sources, given, /*retain_graph=*/true, /*create_graph=*/true, /*allow_unused=*/true);
    variable_list results;
    size_t next = 0;
    for (const Tensor& operand : operands) {
      results.push_back(operand.requires_grad() ? std::move(of_sources[next++]) : Tensor());
    }
    results.emplace_back();
    return results;
  }
};

RecurrentResult run_layer(RecurrentLayer layer, bool above_backends) {
  if (above_backends && at::GradMode::is_enabled()) {
    Tensors operands = layer.state;
    operands.insert(operands.end(), layer.weights.begin(), layer.weights.end());
    const auto requires_grad = [](const Tensor& each) { return each.requires_grad(); };
    if (layer.input.requires_grad() || std::any_of(operands.begin(), operands.end(), requires_grad)) {
      const variable_list results = RecurrentLayerGradient::apply(layer.input, TensorList(operands), layer);
      return {results[0], {results.begin() + 1, results.end()}, {}};
    }
  }
  const BelowAutograd below;
  return run(layer, /*keep=*/false);
}

// ---- Networks of layers

struct Network {
  Tensor input; // (T, B, I), (B, T, I) if batch_first, or packed (N, I)
  OptionalTensor batch_sizes;
  Tensors state; // each (layers * directions, B, size)
  Tensors weights;
  RecurrentMode mode;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional, batch_first;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  bool is_projected() const { return mode == RecurrentMode::Lstm && state[0].size(2) != state[1].size(2); }
  size_t weights_of_layer() const { return (has_biases ? 4 : 2) + (is_projected() ? 1 : 0); }
};

// Whether a tensor has no wrapper of torch.func, Python subclass, forward gradient or lazy bit.
bool is_plain(const Tensor& tensor, const Tensor& input) {
  constexpr c10::DispatchKeySet plain(
      {c10::DispatchKey::PrivateUse1, c10::DispatchKey::AutogradPrivateUse1, c10::DispatchKey::AutocastPrivateUse1,
       c10::DispatchKey::ADInplaceOrView});
  return tensor.defined() && (tensor.key_set() - plain).highestFunctionalityKey() == c10::DispatchKey::Undefined &&
      tensor.device() == input.device() && tensor.scalar_type() == input.scalar_type() && tensor.numel() != 0 &&
      !tensor._fw_grad(/*level=*/0).defined();
}

// Modes and transforms must see the operators of which torch composes a network.
bool is_observed() {
  return c10::impl::PythonDispatcherTLS::get_state() != nullptr || c10::impl::TorchDispatchModeTLS::any_modes_set() ||
      c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
}

std::optional<std::vector<int64_t>> batch_sizes_of(const Network& network) {
  if (!network.batch_sizes.has_value()) {
    const int64_t steps = network.input.size(network.batch_first ? 1 : 0);
    return std::vector<int64_t>(static_cast<size_t>(steps), network.input.size(network.batch_first ? 0 : 1));
  }
  const Tensor& given = *network.batch_sizes;
  if (!given.defined() || !given.is_cpu() || given.scalar_type() != at::kLong || given.dim() != 1 ||
      !given.is_contiguous() || given.numel() == 0) {
    return std::nullopt;
  }
  const int64_t* data = given.const_data_ptr<int64_t>();
  std::vector<int64_t> sizes(data, data + given.numel());
  const bool fits = std::is_sorted(sizes.rbegin(), sizes.rend()) && sizes.back() > 0 &&
      std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == network.input.size(0);
  return fits ? std::make_optional(std::move(sizes)) : std::nullopt;
}

// Whether all operands have the shapes that the network's settings require. torch's composition raises for others.
bool has_shapes(const Network& network, int64_t batch) {
  const int64_t count = network.layers * network.directions();
  for (const Tensor& state : network.state) {
    if (state.dim() != 3 || state.size(0) != count || state.size(1) != batch) {
      return false;
    }
  }
  const bool lstm = network.mode == RecurrentMode::Lstm;
  const int64_t gates = lstm ? 4 : network.mode == RecurrentMode::Gru ? 3 : 1;
  const int64_t hidden = network.state.back().size(2);
  const int64_t size = network.state[0].size(2);
  const size_t per_layer = network.weights_of_layer();
  if (network.weights.size() != per_layer * static_cast<size_t>(count)) {
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    const TensorList weights = TensorList(network.weights).slice(static_cast<size_t>(i) * per_layer, per_layer);
    const int64_t inputs = i < network.directions() ? network.input.size(-1) : size * network.directions();
    if (weights[0].sizes() != at::IntArrayRef({gates * hidden, inputs}) ||
        weights[1].sizes() != at::IntArrayRef({gates * hidden, size}) ||
        (network.has_biases &&
         (weights[2].sizes() != at::IntArrayRef({gates * hidden}) || weights[3].sizes() != weights[2].sizes())) ||
        (network.is_projected() && weights.back().sizes() != at::IntArrayRef({size, hidden}))) {
      return false;
    }
  }
  return true;
}

// The batch sizes of the steps, or nullopt if torch's composition must run.
std::optional<std::vector<int64_t>> steps_served(const Network& network) {
  const size_t states = network.mode == RecurrentMode::Lstm ? 2 : 1;
  if (network.state.size() != states || network.layers < 1 ||
      network.input.dim() != (network.batch_sizes.has_value() ? 2 : 3) ||
      !at::isFloatingType(network.input.scalar_type()) || !is_plain(network.input, network.input)) {
    return std::nullopt;
  }
  for (const Tensors* operands : {&network.state, &network.weights}) {
    for (const Tensor& operand : *operands) {
      if (!is_plain(operand, network.input)) {
        return std::nullopt;
      }
    }
  }
  if (network.state[0].dim() != 3 || network.state.back().dim() != 3) {
    return std::nullopt;
  }
  std::optional<std::vector<int64_t>> sizes = batch_sizes_of(network);
  return sizes.has_value() && has_shapes(network, sizes->front()) ? sizes : std::nullopt;
}

// Returns the output and the states after the last step.
Tensors run_network(const Network& network, const std::vector<int64_t>& batch_sizes, bool above_backends) {
  const size_t per_layer = network.weights_of_layer();
  std::vector<Tensors> unstacked;
  for (const Tensor& state : network.state) {
    unstacked.push_back(state.unbind(0));
  }
  std::vector<Tensors> states(network.state.size());
  Tensor output = network.batch_first ? network.input.transpose(0, 1) : network.input;
  size_t index = 0;
  for (int64_t layer = 0; layer < network.layers; ++layer) {
    Tensors outputs;
    for (int64_t direction = 0; direction < network.directions(); ++direction, ++index) {
      RecurrentLayer one{
          output,
          {},
          TensorList(network.weights).slice(index * per_layer, per_layer).vec(),
          batch_sizes,
          network.mode,
          network.has_biases,
          /*reverse=*/direction == 1};
      for (const Tensors& state : unstacked) {
        one.state.push_back(state[index]);
      }
      RecurrentResult result = run_layer(std::move(one), above_backends);
      outputs.push_back(std::move(result.output));
      for (size_t i = 0; i < states.size(); ++i) {
        states[i].push_back(std::move(result.state[i]));
      }
    }
    output = network.bidirectional ? at::cat(outputs, -1) : std::move(outputs[0]);
    if (network.dropout != 0 && network.train && layer + 1 < network.layers) {
      output = at::dropout(output, network.dropout, /*train=*/true);
    }
  }
  Tensors results{network.batch_first ? output.transpose(0, 1) : output};
  for (const Tensors& state : states) {
    results.push_back(at::stack(state, 0));
  }
  return results;
}

// Under autocast torch's composition computes in the 16-bit dtype, products and cells alike.
void cast_for_autocast(Network& network) {
  if (C10_LIKELY(c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastPrivateUse1))) {
    return;
  }
  const auto cast = [dtype = at::autocast::get_autocast_dtype(at::kPrivateUse1)](Tensor& tensor) {
    tensor = at::autocast::cached_cast(dtype, tensor, at::kPrivateUse1);
  };
  cast(network.input);
  std::for_each(network.state.begin(), network.state.end(), cast);
  std::for_each(network.weights.begin(), network.weights.end(), cast);
}

// Returns nullopt if torch's composition must run.
std::optional<Tensors> run(Network network, bool above_backends) {
  if (is_observed()) {
    return std::nullopt;
  }
  cast_for_autocast(network);
  const auto batch_sizes = steps_served(network);
  return batch_sizes.has_value() ? std::make_optional(run_network(network, *batch_sizes, above_backends))
                                 : std::nullopt;
}

// ---- aten::lstm, gru, rnn_tanh and rnn_relu, with a tensor or with a packed sequence

template <bool above_backends>
std::tuple<Tensor, Tensor, Tensor> lstm(
    const Tensor& input, TensorList state, TensorList weights, bool has_biases, int64_t layers, double dropout,
    bool train, bool bidirectional, bool batch_first) {
  if (auto results =
          run({input,
               {},
               state.vec(),
               weights.vec(),
               RecurrentMode::Lstm,
               has_biases,
               layers,
               dropout,
               train,
               bidirectional,
               batch_first},
              above_backends)) {
    return {std::move((*results)[0]), std::move((*results)[1]), std::move((*results)[2])};
  }
  return at::compositeimplicitautograd::lstm(
      input, state, weights, has_biases, layers, dropout, train, bidirectional, batch_first);
}

template <bool above_backends>
std::tuple<Tensor, Tensor, Tensor> lstm_packed(
    const Tensor& data, const Tensor& batch_sizes, TensorList state, TensorList weights, bool has_biases,
    int64_t layers, double dropout, bool train, bool bidirectional) {
  if (auto results =
          run({data, batch_sizes, state.vec(), weights.vec(), RecurrentMode::Lstm, has_biases, layers, dropout, train,
               bidirectional, false},
              above_backends)) {
    return {std::move((*results)[0]), std::move((*results)[1]), std::move((*results)[2])};
  }
  return at::compositeimplicitautograd::lstm(
      data, batch_sizes, state, weights, has_biases, layers, dropout, train, bidirectional);
}

using Composed =
    std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool);
using ComposedPacked = std::tuple<Tensor, Tensor>(
    const Tensor&, const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool);

template <RecurrentMode mode, Composed* composed, bool above_backends>
std::tuple<Tensor, Tensor> network_of_one_state(
    const Tensor& input, const Tensor& state, TensorList weights, bool has_biases, int64_t layers, double dropout,
    bool train, bool bidirectional, bool batch_first) {
  if (auto results =
          run({input, {}, {state}, weights.vec(), mode, has_biases, layers, dropout, train, bidirectional, batch_first},
              above_backends)) {
    return {std::move((*results)[0]), std::move((*results)[1])};
  }
  return composed(input, state, weights, has_biases, layers, dropout, train, bidirectional, batch_first);
}

template <RecurrentMode mode, ComposedPacked* composed, bool above_backends>
std::tuple<Tensor, Tensor> packed_network_of_one_state(
    const Tensor& data, const Tensor& batch_sizes, const Tensor& state, TensorList weights, bool has_biases,
    int64_t layers, double dropout, bool train, bool bidirectional) {
  if (auto results = run(
          {data, batch_sizes, {state}, weights.vec(), mode, has_biases, layers, dropout, train, bidirectional, false},
          above_backends)) {
    return {std::move((*results)[0]), std::move((*results)[1])};
  }
  return composed(data, batch_sizes, state, weights, has_biases, layers, dropout, train, bidirectional);
}

template <bool above_backends>
void implement_networks(torch::Library& m) {
  namespace torch_composed = at::compositeimplicitautograd;
  m.impl("lstm.input", TORCH_FN(lstm<above_backends>));
  m.impl("lstm.data", TORCH_FN(lstm_packed<above_backends>));
  m.impl("gru.input", TORCH_FN((network_of_one_state<RecurrentMode::Gru, &torch_composed::gru, above_backends>)));
  m.impl("gru.data", TORCH_FN((packed_network_of_one_state<RecurrentMode::Gru, &torch_composed::gru, above_backends>)));
  m.impl(
      "rnn_tanh.input",
      TORCH_FN((network_of_one_state<RecurrentMode::Tanh, &torch_composed::rnn_tanh, above_backends>)));
  m.impl(
      "rnn_tanh.data",
      TORCH_FN((packed_network_of_one_state<RecurrentMode::Tanh, &torch_composed::rnn_tanh, above_backends>)));
  m.impl(
      "rnn_relu.input",
      TORCH_FN((network_of_one_state<RecurrentMode::Relu, &torch_composed::rnn_relu, above_backends>)));
  m.impl(
      "rnn_relu.data",
      TORCH_FN((packed_network_of_one_state<RecurrentMode::Relu, &torch_composed::rnn_relu, above_backends>)));
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { implement_networks<true>(m); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { // inference mode
  implement_networks<false>(m);
}

} // namespace
} // namespace musa_runtime
