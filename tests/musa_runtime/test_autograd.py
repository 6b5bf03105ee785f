# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Autograd, checkpointing and function transforms on device tensors."""

import pytest
import torch
from torch.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap
from torch.utils.checkpoint import checkpoint

from tests.harness.subprocesses import run_code


def _block(x, weight):
    return torch.nn.functional.dropout(torch.tanh(x @ weight), 0.5)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_repeat_the_random_numbers_of_the_forward(device, use_reentrant):
    torch.manual_seed(0)
    x = torch.randn(16, 16, device=device, requires_grad=True)
    weight = torch.randn(16, 16, device=device, requires_grad=True)
    results = []
    for recompute in (False, True):
        x.grad = weight.grad = None
        torch.manual_seed(42)
        out = checkpoint(_block, x, weight, use_reentrant=use_reentrant) if recompute else _block(x, weight)
        # The backward pass recomputes after other numbers were drawn.
        torch.rand(1000, device=device)
        out.square().sum().backward()
        results.append((out.detach().cpu(), x.grad.cpu(), weight.grad.cpu()))
    for plain, recomputed in zip(*results):
        assert torch.equal(plain, recomputed)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_restore_the_generators_state(musa, use_reentrant):
    x = torch.randn(8, 8, device="musa", requires_grad=True)
    weight = torch.randn(8, 8, device="musa")
    out = checkpoint(_block, x, weight, use_reentrant=use_reentrant)
    state = musa.get_rng_state()
    out.sum().backward()
    assert torch.equal(musa.get_rng_state(), state)


def test_gradients_equal_numerical_ones(device):
    x = torch.randn(3, 4, dtype=torch.float64, device=device, requires_grad=True)
    y = torch.randn(4, 2, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: torch.tanh(a @ b).cumsum(0), (x, y))
    assert torch.autograd.gradgradcheck(lambda a, b: (a @ b).sin(), (x, y))


def test_custom_functions(device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 3 * x**2

    x = torch.arange(3.0, device=device, requires_grad=True)
    Cube.apply(x).sum().backward()
    assert x.grad.cpu().tolist() == [0, 3, 12]


def test_hooks_see_device_gradients(device):
    seen = []
    x = torch.ones(2, device=device, requires_grad=True)
    x.register_hook(lambda gradient: seen.append(gradient.device.type))
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad.device.type))
    (x * 2).sum().backward()
    assert seen == [device, device]


def test_gradients_cross_devices(device):
    x = torch.ones(3, requires_grad=True)
    ((x * 2).to(device) * 3).sum().cpu().backward()
    assert x.grad.tolist() == [6, 6, 6]


def test_gradients_cross_two_musa_devices(two_devices):
    x = torch.ones(3, device="musa:0", requires_grad=True)
    y = torch.full((3,), 2.0, device="musa:1", requires_grad=True)
    (x.to("musa:1") * y).to("musa:0").sum().backward()
    assert x.grad.cpu().tolist() == [2, 2, 2]
    assert y.grad.cpu().tolist() == [1, 1, 1]
    assert (x.grad.device.index, y.grad.device.index) == (0, 1)


def test_in_place_modification_of_a_saved_tensor_is_noticed(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_tensors_can_be_kept_on_the_cpu(musa):
    x = torch.randn(64, 64, device="musa", requires_grad=True)
    expected = torch.autograd.grad((x.sin() * x).sum(), x)[0]
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = (x.sin() * x).sum()
    assert torch.equal(torch.autograd.grad(loss, x)[0].cpu(), expected.cpu())


def test_anomaly_mode_names_the_forward(device):
    x = torch.zeros(2, device=device, requires_grad=True)
    with (
        torch.autograd.detect_anomaly(check_nan=True),
        pytest.raises(RuntimeError, match="returned nan"),
        pytest.warns(UserWarning),
    ):
        (x / x).sqrt().sum().backward()


def test_double_backward(device):
    x = torch.tensor([2.0], device=device, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12, 12)


def test_vmap_equals_a_loop(device):
    x = torch.randn(5, 3, 4, device=device)
    weight = torch.randn(4, 2, device=device)
    looped = torch.stack([torch.softmax(part @ weight, -1) for part in x])
    torch.testing.assert_close(vmap(lambda part: torch.softmax(part @ weight, -1))(x), looped)
    dots = torch.stack([torch.dot(left, right) for left, right in x[:, :2]])
    torch.testing.assert_close(vmap(torch.dot)(x[:, 0], x[:, 1]), dots)


def test_vmap_draws_different_numbers_per_sample(device):
    draws = vmap(lambda x: x + torch.rand(4, device=device), randomness="different")(
        torch.zeros(3, device=device)
    )
    assert not torch.equal(draws[0], draws[1])
    same = vmap(lambda x: x + torch.rand(4, device=device), randomness="same")(torch.zeros(3, device=device))
    assert torch.equal(same[0], same[1])


def test_function_transforms_equal_cpu(device):
    x = torch.randn(4)

    def f(value):
        return (value.sin() * value).sum()

    moved = x.to(device)
    for transform in (grad, hessian, jacrev):
        torch.testing.assert_close(transform(f)(moved).cpu(), transform(f)(x))
    primal, tangent = jvp(f, (moved,), (torch.ones_like(moved),))
    torch.testing.assert_close((primal.cpu(), tangent.cpu()), jvp(f, (x,), (torch.ones_like(x),)))
    value, pullback = vjp(torch.sin, moved)
    torch.testing.assert_close(pullback(torch.ones_like(value))[0].cpu(), x.cos())


def test_per_sample_gradients(device):
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 2).to(device)
    parameters = {name: value.detach() for name, value in module.named_parameters()}
    x, y = torch.randn(6, 3, device=device), torch.randn(6, 2, device=device)

    def loss(parameters, sample, target):
        return torch.nn.functional.mse_loss(
            functional_call(module, parameters, sample.unsqueeze(0))[0], target
        )

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for index in range(6):
        single = grad(loss)(parameters, x[index], y[index])
        torch.testing.assert_close(per_sample["weight"][index], single["weight"])


def test_forward_mode_with_dual_tensors(device):
    import torch.autograd.forward_ad as forward_ad

    x = torch.tensor([0.5, 1.0], device=device)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        tangent = forward_ad.unpack_dual(torch.tanh(dual)).tangent
    torch.testing.assert_close(tangent, 1 - torch.tanh(x) ** 2)


THREADS = """
import threading, torch
from torch.utils.checkpoint import checkpoint

def enabled():
    return torch._C._is_multithreading_enabled()

def backward_thread(device):
    found = []
    x = torch.ones(3, device=device, requires_grad=True)
    x.register_hook(lambda gradient: found.append(threading.get_native_id()))
    (x * 2).sum().backward()
    return "caller" if found == [threading.get_native_id()] else "engine"

def nested():
    # Each checkpoint runs a backward pass within the backward pass, deeper than torch nests on one thread.
    work = lambda x: x * 2
    for _ in range(70):
        work = lambda x, inner=work: checkpoint(inner, x, use_reentrant=True)
    x = torch.ones(1, requires_grad=True)
    work(x).backward()
    return x.grad.item()

print("before use:", enabled(), backward_thread("cpu"), nested())
torch.musa.init()
print("after use:", backward_thread("musa"), backward_thread("cpu"), nested())
other = threading.Thread(target=lambda: print("other thread:", enabled(), backward_thread("cpu")))
other.start()
other.join()
"""


@pytest.mark.parametrize("setting", [None, "1"])
@pytest.mark.parametrize("memory", [None, "strict"])
def test_the_thread_of_backward_is_torchs_own_unless_the_host_addresses_the_memory(musa, setting, memory):
    lines = run_code(THREADS, TORCH_MUSA_BACKWARD_THREADS=setting, MUSA_EMULATOR_MEMORY=memory).splitlines()
    own = "engine" if setting == "1" or memory == "strict" else "caller"
    assert lines == [
        "before use: True caller 2.0",
        f"after use: {own} caller 2.0",
        "other thread: True caller",
    ]
