# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Moving modules: parameters keep their identity, and optimizers that were created before the move still
train them.
"""

import copy

import pytest
import torch
from torch import nn


def _network():
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def test_moving_keeps_the_identity_of_parameters(device):
    module = _network()
    parameters = list(module.parameters())
    module.to(device)
    assert all(left is right for left, right in zip(parameters, module.parameters()))
    assert all(parameter.device.type == device and parameter.is_leaf for parameter in parameters)
    assert module[1].running_mean.device.type == device
    module.to("cpu")
    assert all(left is right for left, right in zip(parameters, module.parameters()))
    assert all(parameter.device.type == "cpu" for parameter in parameters)


def test_an_optimizer_built_before_the_move_trains_the_moved_parameters(device):
    torch.manual_seed(3)
    module = _network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2)
    module.to(device)
    x = torch.randn(32, 6, device=device)
    y = torch.randn(32, 3, device=device)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(module(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_gradients_move_with_their_parameters(device):
    module = nn.Linear(3, 2)
    module(torch.ones(1, 3)).sum().backward()
    expected = module.weight.grad.clone()
    module.to(device)
    assert module.weight.grad.device.type == device
    assert torch.equal(module.weight.grad.cpu(), expected)


def test_data_can_be_assigned_across_devices(device):
    parameter = nn.Parameter(torch.zeros(3))
    alias = parameter
    parameter.data = torch.ones(3, device=device)
    assert alias.device.type == device
    assert alias.cpu().eq(1).all()
    parameter.data = torch.full((3,), 2.0)
    assert parameter.device.type == "cpu"
    assert parameter.eq(2).all()


def test_tied_weights_stay_tied(device):
    module = nn.ModuleList([nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)])
    module[1].weight = module[0].weight
    module.to(device)
    assert module[1].weight is module[0].weight
    with torch.no_grad():
        module[0].weight.fill_(3)
    assert module[1].weight.cpu().eq(3).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_moving_and_converting_at_once(device, dtype):
    module = _network().to(device, dtype)
    assert {parameter.dtype for parameter in module.parameters()} == {dtype}
    assert module[1].num_batches_tracked.dtype is torch.int64
    assert module(torch.randn(4, 6, device=device, dtype=dtype)).dtype is dtype


def test_channels_last_modules(device):
    module = nn.Conv2d(3, 4, 3).to(device, memory_format=torch.channels_last)
    assert module.weight.is_contiguous(memory_format=torch.channels_last)


def test_the_musa_method_of_modules(musa):
    module = _network().musa()
    assert all(parameter.is_musa for parameter in module.parameters())
    assert all(not parameter.is_musa for parameter in module.cpu().parameters())


def test_to_empty_and_the_meta_device(device):
    with torch.device("meta"):
        module = _network()
    module.to_empty(device=device)
    for parameter in module.parameters():
        nn.init.ones_(parameter)
    assert module[0].weight.cpu().eq(1).all()


def test_deep_copies_are_independent(device):
    module = _network().to(device)
    twin = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert all(parameter.device.type == device for parameter in twin.parameters())
    assert module[0].weight.abs().sum().item() > 0


def test_a_state_dict_loads_across_devices(device):
    source, target = _network(), _network().to(device)
    target.load_state_dict(source.state_dict())
    assert all(
        torch.equal(left, right.cpu()) for left, right in zip(source.parameters(), target.parameters())
    )
    assert target[0].weight.device.type == device
    source.load_state_dict(target.state_dict(), assign=True)
    assert source[0].weight.device.type == device


def test_packed_sequences_move(device):
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.ones(2, 2)]).to(device)
    assert packed.data.device.type == device
    padded, lengths = nn.utils.rnn.pad_packed_sequence(packed)
    assert padded.device.type == device
    assert lengths.tolist() == [3, 2]


def test_parameters_to_vector_and_back(device):
    module = nn.Linear(3, 2).to(device)
    vector = nn.utils.parameters_to_vector(module.parameters())
    nn.utils.vector_to_parameters(vector * 0 + 1, module.parameters())
    assert module.weight.cpu().eq(1).all()


def test_gradients_are_clipped(device):
    module = nn.Linear(3, 2).to(device)
    (module(torch.ones(4, 3, device=device)) * 100).sum().backward()
    norm = nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    assert norm.item() > 1
    total = torch.stack([parameter.grad.norm() for parameter in module.parameters()]).norm()
    assert total.item() == pytest.approx(1, abs=1e-4)


def test_spectral_norm_and_parametrizations(device):
    torch.manual_seed(0)
    module = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)).to(device)
    for _ in range(20):
        module(torch.ones(2, 4, device=device)).sum().backward()
    assert torch.linalg.matrix_norm(module.weight, 2).item() == pytest.approx(1, abs=0.05)
