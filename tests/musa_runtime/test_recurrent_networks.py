# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""nn.RNN, nn.LSTM and nn.GRU: one operator per layer and direction, with torch's results."""

import itertools
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

IN_PLACE = pytest.mark.host_addressable("torch's own kernels compute in device memory, on the host")
FORWARD, BACKWARD = "torch_musa::_recurrent_layer", "torch_musa::_recurrent_layer_backward"
KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN, "relu": nn.RNN}
SETTINGS = {
    "num_layers": (1, 2),
    "bidirectional": (False, True),
    "batch_first": (False, True),
    "bias": (True, False),
}
INPUT, HIDDEN, BATCH, STEPS = 3, 4, 5, 6
# The order of sums differs, and in 16 bits the composed cells round after each step.
TOLERANCE = {
    torch.float64: {"rtol": 1e-9, "atol": 1e-9},
    torch.float32: {"rtol": 1e-4, "atol": 1e-5},
    torch.float16: {"rtol": 2e-2, "atol": 2e-2},
    torch.bfloat16: {"rtol": 1e-1, "atol": 1e-1},
}


class Composed(TorchDispatchMode):
    """Changes nothing; while a mode is active, torch composes recurrent networks from cells and products."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.seen.add(op.name())
        return op(*args, **(kwargs or {}))


def module_of(kind, dtype=torch.float32, **settings):
    torch.manual_seed(0)
    if kind in ("tanh", "relu"):
        settings["nonlinearity"] = kind
    return KINDS[kind](INPUT, HIDDEN, dtype=dtype, **settings)


def operands(kind, module, packed, with_state):
    """Returns (input, state or None), drawn on the CPU."""
    dtype = module.weight_ih_l0.dtype
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.randn(*shape, generator=generator).to(dtype)

    directions = module.num_layers * (2 if module.bidirectional else 1)
    state = None
    if with_state:
        hidden = draw(directions, BATCH, module.proj_size or HIDDEN)
        state = (hidden, draw(directions, BATCH, HIDDEN)) if kind == "lstm" else hidden
    if packed:
        sequences = [draw(length, INPUT) for length in (2, STEPS, 1, 4, 4)]
        return nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False), state
    return draw(*((BATCH, STEPS, INPUT) if module.batch_first else (STEPS, BATCH, INPUT))), state


def leaves(value):
    if value is None:
        return []
    if isinstance(value, nn.utils.rnn.PackedSequence):
        return [value.data]
    return list(value) if isinstance(value, tuple) else [value]


def run(module, inputs, state, device):
    """Returns the results and the gradients of all operands, on the CPU."""
    module = module.to(device)

    def moved(value):
        if isinstance(value, nn.utils.rnn.PackedSequence):
            return value.to(device)._replace(data=value.data.detach().to(device).requires_grad_())
        if isinstance(value, tuple):
            return tuple(moved(each) for each in value)
        return None if value is None else value.detach().to(device).requires_grad_()

    inputs, state = moved(inputs), moved(state)
    output, new_state = module(inputs, state)
    results = [*leaves(output), *leaves(new_state)]
    sources = [*leaves(inputs), *leaves(state), *module.parameters()]
    generator = torch.Generator().manual_seed(2)
    weights = [torch.randn(part.shape, generator=generator).to(part) for part in results]
    gradients = torch.autograd.grad(results, sources, weights)
    return [part.detach().cpu() for part in (*results, *gradients)]


def variants(full):
    """Returns tuples (kind, dtype, settings, packed, with_state)."""
    every = []
    for kind, values in itertools.product(KINDS, itertools.product(*SETTINGS.values())):
        settings = dict(zip(SETTINGS, values))
        for proj_size in (0, 2) if kind == "lstm" else (0,):
            for packed, with_state in itertools.product((False, True), repeat=2):
                if packed and settings["batch_first"]:
                    continue
                for dtype in TOLERANCE:
                    if kind == "relu" and dtype.itemsize == 2:
                        continue  # rounding moves sums across the kink at 0; tanh covers the same code
                    every.append((kind, dtype, {**settings, "proj_size": proj_size}, packed, with_state))
    return every if full else every[:: len(every) // 60 | 1]


@contextmanager
def preferred(*providers):
    with torch.musa.ops.prefer(FORWARD, *providers), torch.musa.ops.prefer(BACKWARD, *providers):
        yield


def calls(op):
    return torch.musa.ops.explain(op)["calls"]


@pytest.mark.parametrize("provider", [pytest.param("host", marks=IN_PLACE), "runtime"])
def test_every_variant_has_the_results_and_gradients_of_the_cpu(musa, provider, full):
    wrong = []
    with preferred(provider):
        for kind, dtype, settings, packed, with_state in variants(full):
            if kind != "lstm":
                settings = {key: value for key, value in settings.items() if key != "proj_size"}
            module = module_of(kind, dtype, **settings)
            inputs, state = operands(kind, module, packed, with_state)
            expected = run(module, inputs, state, "cpu")
            before = calls(FORWARD), calls(BACKWARD)
            actual = run(module, inputs, state, "musa")
            layers = settings["num_layers"] * (2 if settings["bidirectional"] else 1)
            if (calls(FORWARD) - before[0], calls(BACKWARD) - before[1]) != (layers, layers):
                wrong.append((kind, dtype, settings, packed, "not one call per layer and direction"))
            try:
                torch.testing.assert_close(actual, expected, **TOLERANCE[dtype])
            except AssertionError as error:
                wrong.append((kind, dtype, settings, packed, with_state, str(error)))
    assert not wrong, f"{len(wrong)} wrong, the first: {wrong[0]}"


@pytest.mark.parametrize("kind", KINDS)
def test_strides_are_those_of_the_cpu(musa, kind):
    for batch_first, bidirectional in itertools.product((False, True), repeat=2):
        module = module_of(kind, batch_first=batch_first, bidirectional=bidirectional)
        inputs, _ = operands(kind, module, False, False)
        expected = [part.stride() for value in module(inputs) for part in leaves(value)]
        module.to("musa")
        actual = [part.stride() for value in module(inputs.to("musa")) for part in leaves(value)]
        assert actual == expected


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers_draws_what_the_composition_draws(musa, kind):
    module = module_of(kind, num_layers=3, dropout=0.5).to("musa")
    inputs = torch.randn(STEPS, BATCH, INPUT, device="musa")
    results = []
    for composed in (True, False):
        torch.manual_seed(3)
        with Composed() if composed else torch.enable_grad():
            results.append(module(inputs)[0])
    torch.testing.assert_close(results[1], results[0])
    assert not torch.equal(module(inputs)[0], results[1])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind, proj_size", [*((kind, 0) for kind in KINDS), ("lstm", 2)])
def test_first_and_second_derivatives_are_those_of_finite_differences(musa, kind, proj_size, packed):
    settings = {"proj_size": proj_size} if proj_size else {}
    module = module_of(kind, torch.float64, bidirectional=True, **settings).to("musa")
    data = torch.randn(3, 2, INPUT, dtype=torch.float64, device="musa", requires_grad=True)
    names = [name for name, _ in module.named_parameters()]
    parameters = [parameter.detach().requires_grad_() for parameter in module.parameters()]

    def f(x, *weights):
        if packed:
            x = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 1]))
        output, state = torch.func.functional_call(module, dict(zip(names, weights)), (x,))
        return (*leaves(output), *leaves(state))

    torch.autograd.gradcheck(f, (data, *parameters), fast_mode=True)
    torch.autograd.gradgradcheck(f, (data, *parameters), fast_mode=True)


def test_second_derivatives_count_a_tensor_once_per_use(musa):
    """One tensor is the input, the hidden state's weight and the input's weight."""

    def second(device, composed):
        shared = (torch.arange(9.0, dtype=torch.float64).view(3, 3) / 10).to(device).requires_grad_()
        with Composed() if composed else torch.enable_grad():
            output, _ = torch.ops.aten.rnn_tanh.input(
                shared[None], shared[None] * 0, [shared, shared], False, 1, 0.0, True, False, False
            )
        (first,) = torch.autograd.grad(output.square().sum(), shared, create_graph=True)
        (result,) = torch.autograd.grad(first.square().sum(), shared)
        return result.cpu()

    torch.testing.assert_close(second("musa", False), second("cpu", True))


@pytest.mark.parametrize("kind", KINDS)
def test_results_may_be_changed_in_place_before_the_backward_pass(musa, kind):
    """Programs may do so, because the composition saves none of its results."""

    def gradients(change):
        module = module_of(kind).to("musa")
        output, state = module(torch.ones(STEPS, BATCH, INPUT, device="musa"))
        total = change(output) + sum(change(part) for part in leaves(state))
        total.sum().backward()
        return [parameter.grad.cpu() for parameter in module.parameters()]

    changed = gradients(lambda part: part.mul_(2).sum())
    torch.testing.assert_close(changed, gradients(lambda part: (part * 2).sum()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_in_evaluation_has_gradients(musa, kind):
    module = module_of(kind).eval()
    inputs, state = operands(kind, module, False, True)
    torch.testing.assert_close(run(module, inputs, state, "musa"), run(module.cpu(), inputs, state, "cpu"))


def test_only_operands_that_require_a_gradient_get_one(musa):
    module = module_of("lstm").to("musa")
    module.weight_hh_l0.requires_grad_(False)
    inputs = torch.randn(STEPS, BATCH, INPUT, device="musa")
    module(inputs)[0].sum().backward()
    assert module.weight_hh_l0.grad is None and module.weight_ih_l0.grad is not None
    frozen = module_of("gru").to("musa").requires_grad_(False)
    assert not frozen(inputs)[0].requires_grad
    frozen(inputs.requires_grad_())[0].sum().backward()
    assert inputs.grad is not None


@pytest.mark.parametrize("kind", KINDS)
def test_inference_mode_runs_the_same_operator(musa, kind):
    module = module_of(kind)
    inputs, _ = operands(kind, module, False, False)
    expected = module(inputs)[0].detach()
    module.to("musa")
    with torch.inference_mode():
        before = calls(FORWARD)
        actual = module(inputs.to("musa"))[0]
        assert calls(FORWARD) == before + 1
    torch.testing.assert_close(actual.cpu(), expected)


@IN_PLACE
@pytest.mark.parametrize("kind", KINDS)
def test_another_provider_can_serve_the_backward_pass(musa, kind):
    module = module_of(kind)
    inputs, _ = operands(kind, module, False, False)
    expected = run(module, inputs, None, "cpu")[-1]
    for first, second in (("host", "runtime"), ("runtime", "host")):
        moved = module.to("musa")
        with preferred(first):
            output, state = moved(inputs.to("musa"))
        results = [output, *leaves(state)]
        generator = torch.Generator().manual_seed(2)
        weights = [torch.randn(part.shape, generator=generator).to(part) for part in results]
        with preferred(second):
            gradient = torch.autograd.grad(results, moved.bias_hh_l0, weights)[0]
        torch.testing.assert_close(gradient.cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dispatch_mode_sees_the_operators_of_torchs_composition(musa, kind):
    module = module_of(kind).to("musa")
    inputs = torch.randn(STEPS, BATCH, INPUT, device="musa")
    with Composed() as mode:
        composed = module(inputs)[0]
    assert not any(name.startswith("torch_musa::") for name in mode.seen)
    assert {"aten::addmm"} <= mode.seen or {"aten::mm"} <= mode.seen
    torch.testing.assert_close(module(inputs)[0], composed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_traced_network_has_operators_of_torch_alone(musa, kind):
    from torch.fx.experimental.proxy_tensor import make_fx

    module = module_of(kind).to("musa")
    parameters = dict(module.named_parameters())
    inputs = torch.randn(STEPS, BATCH, INPUT, device="musa")

    def loss(parameters, inputs):
        output = torch.func.functional_call(module, parameters, (inputs,))[0]
        return torch.autograd.grad(output.sum(), list(parameters.values()))

    expected = loss(parameters, inputs)
    for mode in ("real", "fake"):
        graph = make_fx(loss, tracing_mode=mode)(parameters, inputs)
        targets = {str(node.target) for node in graph.graph.nodes if node.op == "call_function"}
        assert "aten.mm.default" in targets and not any("torch_musa" in target for target in targets)
        torch.testing.assert_close(graph(parameters, inputs), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_the_python_dispatcher_decomposes_a_network_as_on_other_devices(musa, kind):
    op = getattr(torch.ops.aten, f"rnn_{kind}" if kind in ("tanh", "relu") else kind)
    for overload in (op.input, op.data):
        for key in (torch._C.DispatchKey.AutogradPrivateUse1, torch._C.DispatchKey.PrivateUse1):
            assert overload.py_kernels[key] == overload.decompose


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_of_torch_func_have_the_cpus_results(musa, kind):
    module = module_of(kind, torch.float64)
    inputs = torch.randn(STEPS, BATCH, INPUT, dtype=torch.float64)

    def loss(parameters, inputs):
        return torch.func.functional_call(module, parameters, (inputs,))[0].square().sum()

    def transformed(device):
        module.to(device)
        parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}
        x = inputs.to(device)
        return (
            torch.func.grad(loss)(parameters, x),
            torch.func.grad(lambda y: loss(parameters, x) * y.sum())(x),  # no operand is transformed
        )

    expected, actual = transformed("cpu"), transformed("musa")
    torch.testing.assert_close(torch.utils._pytree.tree_map(torch.Tensor.cpu, actual), expected)


# torch's gated cells have forward-mode gradients only on the CPU.
@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_forward_gradients_are_those_of_the_cpu(musa, kind):
    from torch.autograd import forward_ad

    results = []
    for device in ("cpu", "musa"):
        module = module_of(kind, torch.float64).to(device)
        with forward_ad.dual_level():
            x = torch.linspace(-1, 1, STEPS * BATCH * INPUT, dtype=torch.float64).view(STEPS, BATCH, INPUT)
            dual = forward_ad.make_dual(x.to(device), x.cos().to(device))
            results.append(forward_ad.unpack_dual(module(dual)[0]).tangent.cpu())
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.needs("musa-amp")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_autocast_computes_a_network_in_the_dtype_that_the_composition_has(musa, kind, dtype):
    pytest.importorskip("musa_amp")
    module = module_of(kind, num_layers=2).to("musa")
    inputs = torch.randn(STEPS, BATCH, INPUT, device="musa")
    results = []
    for composed in (True, False):
        module.zero_grad()
        before = calls(FORWARD)
        with torch.autocast("musa", dtype=dtype), Composed() if composed else torch.enable_grad():
            output, state = module(inputs)
        assert calls(FORWARD) - before == (0 if composed else 2)
        output.float().sum().backward()
        gradients = [parameter.grad for parameter in module.parameters()]
        results.append([output, *leaves(state), *gradients])
    assert [part.dtype for part in results[0]] == [part.dtype for part in results[1]]
    torch.testing.assert_close(results[1], results[0], **TOLERANCE[dtype])


@pytest.mark.parametrize("kind", KINDS)
def test_a_captured_training_step_equals_an_eager_one(musa, kind):
    module = module_of(kind, num_layers=2).to("musa")
    inputs = torch.randn(STEPS, BATCH, INPUT, device="musa")
    weights = list(module.parameters())

    def step():
        return torch.autograd.grad(module(inputs)[0].square().sum(), weights)

    step()
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        captured = step()
    inputs.copy_(torch.randn(STEPS, BATCH, INPUT))
    graph.replay()
    torch.testing.assert_close(captured, step(), rtol=1e-4, atol=1e-5)


WRONG = {
    "input of another width": lambda x, h, w: (x[..., :2], h, w),
    "state of another batch": lambda x, h, w: (x, h[:, :2], w),
    "state of two dimensions": lambda x, h, w: (x, h[0], w),
    "a weight too few": lambda x, h, w: (x, h, w[:-1]),
    "a weight of another dtype": lambda x, h, w: (x, h, [w[0].double(), *w[1:]]),
    "a weight on the host": lambda x, h, w: (x, h, [w[0].cpu(), *w[1:]]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_invalid_operands_are_refused_by_torchs_composition(musa, wrong):
    module = module_of("gru").to("musa")
    given = (
        torch.randn(STEPS, BATCH, INPUT, device="musa"),
        torch.zeros(1, BATCH, HIDDEN, device="musa"),
        [parameter.detach() for parameter in module.parameters()],
    )
    x, state, weights = WRONG[wrong](*given)
    before = calls(FORWARD)
    with pytest.raises(RuntimeError):
        torch.ops.aten.gru.input(x, state, weights, True, 1, 0.0, True, False, False)
    assert calls(FORWARD) == before


def test_sequences_without_elements_are_left_to_torchs_composition(musa):
    module = module_of("tanh")
    inputs = torch.randn(STEPS, 0, INPUT)
    expected = module(inputs)
    actual = module.to("musa")(inputs.to("musa"))
    assert [part.shape for part in actual] == [part.shape for part in expected]
