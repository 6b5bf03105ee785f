# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators without a CPU kernel under their own name: convolutions, recurrent cells, SyncBatchNorm,
attention.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional


def _same(f, device, *tensors, rtol=1.3e-6, atol=1e-5):
    """Checks that the results and all gradients of f on the device equal those on the CPU."""
    results = []
    for where in ("cpu", device):
        inputs = [
            tensor.detach().to(where).requires_grad_(tensor.is_floating_point() or tensor.is_complex())
            for tensor in tensors
        ]
        out = f(*inputs)
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        differentiable = [inputs[i] for i in range(len(inputs)) if inputs[i].requires_grad]
        gradients = torch.autograd.grad(sum(part.abs().square().sum() for part in out), differentiable)
        results.append([part.detach().cpu() for part in (*out, *gradients)])
        assert all(part.device.type == where for part in out)
    torch.testing.assert_close(results[1], results[0], rtol=rtol, atol=atol)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stride": 2, "padding": 1},
        {"dilation": 2},
        {"groups": 2},
        {"padding": "same"},
        {"groups": 4},
    ],
    ids=str,
)
def test_convolutions(device, dims, settings):
    x = torch.randn(2, 4, *[7] * dims)
    weight = torch.randn(8, 4 // settings.get("groups", 1), *[3] * dims)
    f = getattr(functional, f"conv{dims}d")
    _same(lambda *inputs: f(*inputs, **settings), device, x, weight, torch.randn(8), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "settings", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2}], ids=str
)
def test_transposed_convolutions(device, dims, settings):
    x = torch.randn(2, 4, *[5] * dims)
    weight = torch.randn(4, 3, *[3] * dims)
    f = getattr(functional, f"conv_transpose{dims}d")
    bias = torch.randn(3 * settings.get("groups", 1))
    _same(lambda *inputs: f(*inputs, **settings), device, x, weight, bias, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.complex64], ids=str)
def test_convolutions_of_other_dtypes(device, dtype):
    x, weight = torch.randn(1, 2, 6, 6, dtype=dtype), torch.randn(3, 2, 3, 3, dtype=dtype)
    expected = functional.conv2d(x, weight)
    actual = functional.conv2d(x.to(device), weight.to(device))
    assert actual.dtype is dtype
    torch.testing.assert_close(actual.cpu(), expected)


def test_channels_last_convolutions_stay_channels_last(device):
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    module = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    expected = module(x)
    actual = module.to(device)(x.to(device))
    assert actual.is_contiguous(memory_format=torch.channels_last) == expected.is_contiguous(
        memory_format=torch.channels_last
    )
    torch.testing.assert_close(actual.cpu(), expected)


def test_convolutions_without_elements(device):
    out = functional.conv2d(torch.randn(0, 3, 8, 8, device=device), torch.randn(4, 3, 3, 3, device=device))
    assert out.shape == (0, 4, 6, 6)


def test_a_convolution_of_the_wrong_shape_is_refused(device):
    with pytest.raises(RuntimeError, match="channels"):
        functional.conv2d(torch.randn(1, 5, 8, 8, device=device), torch.randn(4, 3, 3, 3, device=device))


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": True, "bias": False},
        {"num_layers": 2, "dropout": 0.0},
    ],
    ids=str,
)
def test_recurrent_networks(device, kind, settings):
    torch.manual_seed(0)
    module = kind(4, 5, **settings)
    names = [name for name, _ in module.named_parameters()]

    def f(x, *weights):
        moved = kind(4, 5, **settings).to(x.device)
        out, state = torch.func.functional_call(moved, dict(zip(names, weights)), (x,))
        return (out, *(state if isinstance(state, tuple) else (state,)))

    _same(f, device, torch.randn(6, 3, 4), *module.parameters(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_recurrent_cells(device, kind):
    torch.manual_seed(0)
    module = kind(4, 5)
    names = [name for name, _ in module.named_parameters()]

    def f(x, *weights):
        return torch.func.functional_call(kind(4, 5).to(x.device), dict(zip(names, weights)), (x,))

    _same(f, device, torch.randn(3, 4), *module.parameters(), rtol=1e-4, atol=1e-4)


def test_recurrent_networks_of_packed_sequences(device):
    torch.manual_seed(0)
    module = nn.LSTM(2, 3)
    packed = nn.utils.rnn.pack_sequence([torch.randn(4, 2), torch.randn(2, 2)])
    expected, _ = module(packed)
    actual, _ = module.to(device)(packed.to(device))
    torch.testing.assert_close(actual.data.cpu(), expected.data)


@pytest.mark.parametrize("channels_last", [False, True])
def test_the_parts_of_synchronised_batch_norm(musa, device, channels_last):
    torch.manual_seed(0)
    x = torch.randn(6, 4, 5, 5, device=device)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    eps = 1e-5
    weight, bias = torch.randn(4, device=device), torch.randn(4, device=device)

    mean, inverse_deviation = torch.batch_norm_stats(x, eps)
    reference = x.cpu().double()
    variance, average = torch.var_mean(reference, (0, 2, 3), correction=0)
    torch.testing.assert_close(mean.cpu().double(), average, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        inverse_deviation.cpu().double(), (variance + eps).rsqrt(), rtol=1e-5, atol=1e-6
    )

    # Two workers with half of the batch each must compute the statistics of the whole batch.
    halves = [torch.batch_norm_stats(half, eps) for half in x.chunk(2)]
    running_mean, running_variance = torch.zeros(4, device=device), torch.ones(4, device=device)
    count = torch.full((2,), x.numel() / 4 / 2, device=device)
    gathered_mean, gathered_deviation = torch.batch_norm_gather_stats_with_counts(
        x,
        torch.stack([half[0] for half in halves]),
        torch.stack([half[1] for half in halves]),
        running_mean,
        running_variance,
        0.1,
        eps,
        count,
    )
    torch.testing.assert_close(gathered_mean, mean, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gathered_deviation, inverse_deviation, rtol=1e-4, atol=1e-5)
    n = x.numel() / 4
    torch.testing.assert_close(running_mean.cpu().double(), 0.1 * average, rtol=1e-4, atol=1e-5)
    unbiased = variance * n / (n - 1)
    torch.testing.assert_close(running_variance.cpu().double(), 0.9 + 0.1 * unbiased, rtol=1e-4, atol=1e-5)

    out = torch.batch_norm_elemt(x, weight, bias, mean, inverse_deviation, eps)
    expected = functional.batch_norm(x.cpu(), None, None, weight.cpu(), bias.cpu(), training=True, eps=eps)
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-4, atol=1e-5)

    grad = torch.randn_like(x)
    sum_dy, sum_dy_xmu, grad_weight, grad_bias = torch.batch_norm_backward_reduce(
        grad, x, mean, inverse_deviation, weight, True, True, True
    )
    grad_input = torch.batch_norm_backward_elemt(
        grad,
        x,
        mean,
        inverse_deviation,
        weight,
        sum_dy,
        sum_dy_xmu,
        torch.tensor([int(n)], dtype=torch.int32, device=device),
    )
    leaf = x.cpu().requires_grad_()
    leaf_weight, leaf_bias = weight.cpu().requires_grad_(), bias.cpu().requires_grad_()
    functional.batch_norm(leaf, None, None, leaf_weight, leaf_bias, training=True, eps=eps).backward(
        grad.cpu()
    )
    torch.testing.assert_close(grad_weight.cpu(), leaf_weight.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(grad_bias.cpu(), leaf_bias.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(grad_input.cpu(), leaf.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_updates_its_statistics(device, training):
    torch.manual_seed(0)
    x = torch.randn(8, 3, 4, 4)
    on_cpu, on_device = nn.BatchNorm2d(3), nn.BatchNorm2d(3).to(device)
    on_cpu.train(training)
    on_device.train(training)
    torch.testing.assert_close(on_device(x.to(device)).cpu(), on_cpu(x))
    torch.testing.assert_close(on_device.running_mean.cpu(), on_cpu.running_mean)
    torch.testing.assert_close(on_device.running_var.cpu(), on_cpu.running_var)
    assert on_device.num_batches_tracked.item() == int(training)


@pytest.mark.parametrize("mask", ["none", "causal", "boolean", "additive"])
@pytest.mark.parametrize("heads", [(2, 2), (4, 2)], ids=["equal heads", "grouped heads"])
def test_scaled_dot_product_attention(device, mask, heads):
    torch.manual_seed(0)
    query = torch.randn(2, heads[0], 6, 8)
    key, value = torch.randn(2, heads[1], 6, 8), torch.randn(2, heads[1], 6, 8)
    boolean = torch.ones(6, 6, dtype=torch.bool).tril()

    def f(query, key, value):
        attention_mask = None
        if mask == "boolean":
            attention_mask = boolean.to(query.device)
        elif mask == "additive":
            attention_mask = torch.zeros(6, 6).masked_fill(~boolean, -1e4).to(query.device)
        return functional.scaled_dot_product_attention(
            query, key, value, attention_mask, is_causal=mask == "causal", enable_gqa=heads[0] != heads[1]
        )

    _same(f, device, query, key, value, rtol=1e-4, atol=1e-5)


def test_attention_with_dropout_is_repeatable(device):
    query = torch.randn(1, 2, 16, 8, device=device)
    torch.manual_seed(1)
    first = functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5)
    torch.manual_seed(1)
    assert torch.equal(first, functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5))
    plain = functional.scaled_dot_product_attention(query, query, query)
    assert not torch.equal(first, plain)


@pytest.mark.parametrize("training", [True, False])
def test_transformer_layers(device, training):
    torch.manual_seed(0)
    module = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True).train(training)
    x = torch.randn(2, 5, 16)
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    with torch.no_grad():
        expected = module(x, src_key_padding_mask=padding)
        actual = module.to(device)(x.to(device), src_key_padding_mask=padding.to(device)).cpu()
    torch.testing.assert_close(actual[0], expected[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(actual[1, :3], expected[1, :3], rtol=1e-4, atol=1e-5)


def test_ctc_loss(device):
    torch.manual_seed(0)
    lengths = torch.tensor([12, 9])
    targets = torch.randint(1, 5, (2, 4))
    _same(
        lambda x: functional.ctc_loss(x.log_softmax(2), targets.to(x.device), lengths, torch.tensor([4, 3])),
        device,
        torch.randn(12, 2, 5),
        rtol=1e-4,
    )


@pytest.mark.parametrize("max_norm", [None, 1.0])
def test_embeddings(device, max_norm):
    torch.manual_seed(0)
    indices = torch.tensor([[1, 2, 0], [4, 4, 1]])
    _same(
        lambda weight: functional.embedding(
            indices.to(weight.device), weight if max_norm is None else weight.clone(), padding_idx=0
        ),
        device,
        torch.randn(5, 3),
    )


def test_training_steps_equal_cpu(device):
    torch.manual_seed(0)

    def network():
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 3),
        )

    x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,))
    losses = {}
    for where in ("cpu", device):
        module = network().to(where)
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
        losses[where, len(losses)] = history = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = functional.cross_entropy(module(x.to(where)), y.to(where))
            loss.backward()
            optimizer.step()
            history.append(loss.item())
    expected, actual = losses.values()
    assert actual == pytest.approx(expected, rel=1e-3)
    assert actual[-1] < actual[0]
