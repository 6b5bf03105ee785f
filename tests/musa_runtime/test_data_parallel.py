# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa.parallel: a module on two devices gives the same results and gradients as on one device."""

import copy
from collections import namedtuple

import pytest
import torch
from torch import nn


@pytest.fixture
def parallel(two_devices):
    return two_devices.parallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * 6 * 6, 3, bias=False)
        self.tied = self.head
        self.register_parameter("absent", None)
        self.register_buffer("scale", torch.tensor(2.0))
        self.devices = set()

    def forward(self, x, shift=0.0):
        self.devices.add(x.device)
        assert self.head.weight.device == self.scale.device == x.device
        x = torch.relu(self.norm(self.conv(x)))
        return self.tied(x.flatten(1)) * self.scale + shift


@pytest.fixture
def net():
    return Net().eval().to("musa:0")


def test_forward_and_backward_equal_those_of_one_device(parallel, net):
    alone = copy.deepcopy(net)
    both = parallel.DataParallel(net)
    assert isinstance(both, nn.DataParallel) and both.device_ids[:2] == [0, 1]
    x = torch.randn(6, 1, 8, 8, device="musa:0", requires_grad=True)
    y = x.detach().clone().requires_grad_()
    out, expected = both(x), alone(y)
    assert out.device == torch.device("musa:0")
    torch.testing.assert_close(out, expected)
    out.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    for (name, mine), other in zip(net.named_parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, msg=name)
    assert net.devices == {torch.device("musa", i) for i in range(len(both.device_ids))}


def test_a_training_step_updates_the_parameters_equally(parallel, net):
    alone = copy.deepcopy(net)
    both = parallel.DataParallel(net, device_ids=[0, 1])
    x, target = torch.randn(8, 1, 8, 8), torch.arange(8) % 3
    for model in (both, alone):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to("musa:0")), target.to("musa:0")).backward()
            optimizer.step()
    for mine, other in zip(net.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_running_statistics_are_those_of_the_first_device(parallel, net):
    net.train()
    x = torch.randn(6, 1, 8, 8)
    expected = copy.deepcopy(net)
    expected(x[:3].to("musa:0"))
    parallel.DataParallel(net, [0, 1])(x.to("musa:0")).sum().backward()
    torch.testing.assert_close(net.norm.running_mean, expected.norm.running_mean)
    assert net.norm.num_batches_tracked == 1


def test_inputs_can_be_on_the_host_and_results_on_another_device(parallel, net):
    x = torch.randn(5, 1, 8, 8)
    expected = net(x.to("musa:0")).cpu()
    torch.testing.assert_close(parallel.DataParallel(net, output_device=1)(x).cpu(), expected)
    assert parallel.DataParallel(net, output_device=1)(x).device == torch.device("musa:1")
    torch.testing.assert_close(parallel.data_parallel(net, x, [0, 1]).cpu(), expected)


def test_arguments_by_keyword_and_without_gradients(parallel, net):
    x, shift = torch.randn(4, 1, 8, 8, device="musa:0"), torch.arange(4.0, device="musa:0").view(4, 1)
    with torch.no_grad():
        out = parallel.DataParallel(net)(x, shift=shift)
    assert not out.requires_grad
    torch.testing.assert_close(out, net(x, shift).detach())


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_small_batches(parallel, net, batch):
    x = torch.randn(batch, 1, 8, 8, device="musa:0")
    torch.testing.assert_close(parallel.DataParallel(net)(x), net(x))


def test_a_module_without_arguments_runs_once(parallel):
    class Constant(nn.Module):
        def forward(self):
            return torch.ones(1, device="musa:0")

    assert parallel.DataParallel(Constant())().tolist() == [1.0]


def test_scalar_losses_become_a_vector(parallel):
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return (x * self.weight).sum()

    loss = Loss().to("musa:0")
    out = parallel.DataParallel(loss, [0, 1])(torch.ones(4, 2, device="musa:0"))
    assert out.tolist() == [4.0, 4.0]
    out.mean().backward()
    assert loss.weight.grad.item() == 4.0


def test_second_derivatives_pass_through(parallel):
    layer = nn.Linear(3, 1, bias=False).to("musa:0")
    x = torch.randn(4, 3, device="musa:0", requires_grad=True)
    (grad,) = torch.autograd.grad(
        parallel.DataParallel(layer, [0, 1])(x).pow(3).sum(), layer.weight, create_graph=True
    )
    grad.sum().backward()
    y = x.detach().clone().requires_grad_()
    (expected,) = torch.autograd.grad(layer(y).pow(3).sum(), layer.weight, create_graph=True)
    expected.sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


Pair = namedtuple("Pair", "left right")


def test_nested_arguments_are_split_and_joined(parallel):
    nest = {"a": Pair(torch.arange(4), [torch.arange(4.0).view(4, 1), "text"]), "b": None}
    first, second = parallel.scatter(nest, [0, 1])
    assert type(first["a"]) is Pair and first["b"] is None and second["a"].right[1] == "text"
    assert second["a"].left.device == torch.device("musa:1") and second["a"].left.tolist() == [2, 3]
    whole = parallel.gather([first, second], "cpu")
    assert torch.equal(whole["a"].left, nest["a"].left)
    assert torch.equal(whole["a"].right[0], nest["a"].right[0])


def test_tensors_of_unequal_batches_are_refused_rather_than_dropped(parallel):
    with pytest.raises(ValueError, match=r"\(4,\), \(1,\).* some device would go without"):
        parallel.scatter((torch.ones(4), torch.ones(1)), [0, 1])
    with pytest.raises(ValueError, match="different keys"):
        parallel.gather([{"a": torch.ones(1, device="musa:0")}, {"b": torch.ones(1, device="musa:1")}], 0)


def test_an_exception_in_a_replica_is_raised(parallel):
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            if x.device.index == 1:
                raise KeyError("raised on device 1")
            return x

    with pytest.raises(KeyError, match="raised on device 1"):
        parallel.DataParallel(Fails().to("musa:0"), [0, 1])(torch.ones(2, 1, device="musa:0"))


def test_a_module_on_another_device_is_refused(parallel):
    with pytest.raises(RuntimeError, match="musa:0"):
        parallel.DataParallel(nn.Linear(1, 1), [0, 1])(torch.ones(2, 1))


def test_torchs_own_class_still_needs_functions_of_cuda_builds(two_devices):
    # When torch's class works, torch.musa.parallel.DataParallel is no longer needed.
    layer = nn.Linear(3, 2).to("musa:0")
    with pytest.raises((AttributeError, RuntimeError), match=r"_scatter|CUDA|cuda"):
        nn.DataParallel(layer, [0, 1])(torch.randn(4, 3))
