# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""GradScaler's operators agree with torch's on the CPU, and a scaler recovers from infinite gradients."""

import math

import pytest
import torch

from tests.harness.device import computes_float64

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
BAD = {"infinite": math.inf, "minus infinite": -math.inf, "undefined": math.nan}
unscale = torch._amp_foreach_non_finite_check_and_unscale_


def state(value, device="musa", dtype=torch.float32):
    return torch.full((1,), value, device=device, dtype=dtype)


def calls(musa, name):
    rows = musa.ops.explain(f"aten::{name}")["candidates"]
    return sum(row["calls"] for row in rows if row["provider"] == "amp")


@pytest.fixture
def first_in_line(musa):
    """The pack's operators come first, whatever TORCH_MUSA_OPS is."""
    with musa.ops.prefer("aten::_amp_*", "amp"):
        yield


# ---- operators


def operands(dtype):
    torch.manual_seed(1)
    # One launch processes chunks of 65,536 elements.
    return [
        torch.randn(5).to(dtype),
        torch.randn(0).to(dtype),
        torch.randn(3, 2 * 65536 + 7).to(dtype),
        torch.randn(8, 6).to(dtype).t(),
        torch.randn(9, 4).to(dtype)[::2, 1:3],
        torch.randn(2, 3, 4, 4).to(dtype).contiguous(memory_format=torch.channels_last),
        torch.tensor(2.5).to(dtype),
    ]


def on_device(tensor):
    """A copy on the device with the tensor's strides and storage offset."""
    base = torch.zeros(tensor.untyped_storage().nbytes() // tensor.element_size(), dtype=tensor.dtype)
    copy = base.to("musa").as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return copy.copy_(tensor)


@pytest.mark.parametrize("factor", [1.0, 0.37, 2.0**-16])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_are_multiplied_as_on_the_cpu(musa, first_in_line, dtype, factor):
    expected = operands(dtype)
    actual = [on_device(tensor) for tensor in expected]
    before = calls(musa, "_amp_foreach_non_finite_check_and_unscale_")
    found = {device: state(0.0, device) for device in ("cpu", "musa")}
    unscale(expected, found["cpu"], state(factor, "cpu"))
    unscale(actual, found["musa"], state(factor))
    served = dtype != torch.float64 or computes_float64()
    assert calls(musa, "_amp_foreach_non_finite_check_and_unscale_") == before + served
    assert found["musa"].item() == found["cpu"].item() == 0
    for one, other in zip(actual, expected):
        torch.testing.assert_close(one.cpu(), other, rtol=0, atol=0)
        assert one.stride() == other.stride()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bad", BAD)
def test_a_value_that_is_not_finite_is_found_in_every_tensor(first_in_line, bad, dtype):
    for which in range(7):
        tensors = [on_device(tensor) for tensor in operands(dtype)]
        if tensors[which].numel() == 0:
            continue
        for position in ([0] * tensors[which].dim(), [-1] * tensors[which].dim()):
            found = state(0.0)
            kept = tensors[which][tuple(position)].clone()
            tensors[which][tuple(position)] = BAD[bad]
            unscale(tensors, found, state(0.5))
            assert found.item() == 1, (which, position)
            tensors[which][tuple(position)] = kept


def test_an_earlier_finding_is_kept(first_in_line):
    found = state(1.0)
    unscale([torch.ones(3, device="musa")], found, state(1.0))
    assert found.item() == 1


def test_more_tensors_than_one_launch_takes_with_mixed_dtypes(first_in_line):
    grads = [
        torch.full((1 + index % 3,), float(index % 50), device="musa", dtype=DTYPES[index % 3 % 2 * 2])
        for index in range(1000)
    ]
    found = state(0.0)
    unscale(grads, found, state(2.0))
    assert all((grad == 2 * (index % 50)).all() for index, grad in enumerate(grads)) and found.item() == 0
    grads[999].fill_(math.inf)
    unscale(grads, found, state(1.0))
    assert found.item() == 1


REFUSALS = {
    "integers": (lambda: [torch.ones(2, dtype=torch.int32)], TypeError, "float16, bfloat16"),
    "complex": (lambda: [torch.ones(2, dtype=torch.complex64)], TypeError, "float16, bfloat16"),
    "sparse": (lambda: [torch.eye(2).to_sparse()], RuntimeError, "pass its values"),
    "of one element": (lambda: [torch.ones(1).expand(4)], RuntimeError, "single memory location"),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refusal_comes_before_anything_is_written(first_in_line, kind):
    make, error, message = REFUSALS[kind]
    with torch.device("musa"):
        good, bad = torch.ones(3), make()
    found = state(0.0)
    with pytest.raises(error, match=message):
        unscale([good, *bad], found, state(2.0))
    assert good.tolist() == [1, 1, 1] and found.item() == 0


def test_state_of_another_kind_is_refused(first_in_line):
    grads = [torch.ones(3, device="musa")]
    for found, factor in (
        (state(0.0, dtype=torch.float64), state(1.0)),
        (state(0.0), state(1.0, dtype=torch.float16)),
        (torch.zeros(2, device="musa"), state(1.0)),
        (state(0.0), state(1.0, "cpu")),
    ):
        with pytest.raises(RuntimeError, match=r"found_inf|inv_scale"):
            unscale(grads, found, factor)
    with pytest.raises(RuntimeError, match="growth_tracker"):
        torch._amp_update_scale_(state(1.0), state(0.0), state(0.0), 2.0, 0.5, 1)


@pytest.mark.parametrize("start", [65536.0, 3.0, 2.0**127, 1e-38], ids=str)
def test_the_scale_changes_as_on_the_cpu(musa, first_in_line, start):
    found = [0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    histories = {}
    before = calls(musa, "_amp_update_scale_")
    for device in ("cpu", "musa"):
        scale, tracker = state(start, device), state(0, device, torch.int32)
        history = histories[device] = []
        for flag in found:
            result = torch._amp_update_scale_(scale, tracker, state(float(flag), device), 2.0, 0.5, 3)
            assert result.data_ptr() == scale.data_ptr()
            history.append((scale.item(), tracker.item()))
    assert histories["musa"] == histories["cpu"]
    assert calls(musa, "_amp_update_scale_") == before + len(found)


def test_both_are_captured_in_a_graph(musa, first_in_line):
    grads = [torch.ones(4, device="musa"), torch.ones(3, device="musa", dtype=torch.float16)]
    found, scale, tracker = state(0.0), state(8.0), state(0, dtype=torch.int32)
    graph = musa.MUSAGraph()
    with musa.graph(graph):
        found.zero_()
        unscale(grads, found, scale.reciprocal())
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 1000)
    for first, expected in ((16.0, 8.0), (math.inf, 4.0), (16.0, 4.0)):
        before = scale.item()
        grads[0].fill_(first)
        graph.replay()
        assert grads[0][0].item() == first / before and scale.item() == expected


# ---- the scaler


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=0.1, foreach=True),
    "AdamW capturable": lambda p: torch.optim.AdamW(p, lr=0.1, capturable=True, foreach=True),
    "Adam fused": lambda p: torch.optim.Adam(p, lr=0.1, fused=True),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
    "SGD fused": lambda p: torch.optim.SGD(p, lr=0.1, fused=True),
}


def step(model, optimizer, scaler, images, spoil=None):
    optimizer.zero_grad()
    with torch.autocast("musa", dtype=torch.float16):
        loss = model(images).square().mean()
    scaler.scale(loss).backward()
    if spoil is not None:
        next(model.parameters()).grad.view(-1)[0] = spoil
    scaler.step(optimizer)
    scaler.update()
    return loss


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_step_with_a_bad_gradient_is_skipped_and_the_scale_halved(musa, kind, bad):
    model = torch.nn.Linear(8, 4).to("musa")
    optimizer = OPTIMIZERS[kind](model.parameters())
    scaler = torch.amp.GradScaler("musa", init_scale=1024.0)
    images = torch.randn(16, 8, device="musa")
    step(model, optimizer, scaler, images)
    kept = [parameter.detach().clone() for parameter in model.parameters()]
    step(model, optimizer, scaler, images, spoil=BAD[bad])
    assert scaler.get_scale() == 512.0
    assert all(torch.equal(a, b) for a, b in zip(kept, model.parameters()))
    step(model, optimizer, scaler, images)
    assert scaler.get_scale() == 512.0
    assert not any(torch.equal(a, b) for a, b in zip(kept, model.parameters()))


@pytest.mark.parametrize("kind", ["SGD", "AdamW fused"])
def test_training_equals_training_without_a_scaler(musa, kind):
    def train(enabled):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).to("musa")
        optimizer = OPTIMIZERS[kind](model.parameters())
        scaler = torch.amp.GradScaler("musa", init_scale=256.0, enabled=enabled)
        images = torch.randn(16, 8, device="musa")
        return [step(model, optimizer, scaler, images).item() for _ in range(5)]

    scaled, plain = train(True), train(False)
    assert plain[-1] < plain[0]
    # The scale is a power of two, so gradients differ only where float16 would have underflowed.
    assert scaled == pytest.approx(plain, rel=1e-3)


def test_the_scale_grows_after_the_interval(musa):
    model = torch.nn.Linear(4, 4).to("musa")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scaler = torch.musa.amp.GradScaler(init_scale=4.0, growth_interval=2)
    scales = []
    for _ in range(4):
        step(model, optimizer, scaler, torch.ones(2, 4, device="musa"))
        scales.append(scaler.get_scale())
    assert scales == [4.0, 8.0, 8.0, 16.0]
    other = torch.musa.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() and other.get_scale() == 16.0


def test_gradients_are_clipped_between_unscale_and_step(musa):
    model = torch.nn.Linear(4, 1, bias=False).to("musa")
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("musa", init_scale=64.0)
    kept = model.weight.detach().clone()
    scaler.scale(model(torch.full((1, 4), 10.0, device="musa")).sum()).backward()
    scaler.unscale_(optimizer)
    assert torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item() == pytest.approx(20.0)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    torch.testing.assert_close(kept - model.weight, torch.full((1, 4), 0.5, device="musa"))


def test_sparse_gradients_are_unscaled(musa):
    table = torch.nn.Embedding(10, 3, sparse=True).to("musa")
    optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("musa", init_scale=8.0)
    kept = table.weight.detach().clone()
    scaler.scale(table(torch.tensor([1, 1, 2], device="musa")).sum()).backward()
    scaler.step(optimizer)
    changed = (kept - table.weight)[:, 0].tolist()
    assert changed == pytest.approx([0, 2, 1, 0, 0, 0, 0, 0, 0, 0])


def test_gradients_on_two_devices(two_devices):
    parameters = [torch.ones(3, device=f"musa:{index}", requires_grad=True) for index in range(2)]
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    scaler = torch.amp.GradScaler("musa", init_scale=4.0)
    for spoiled in (None, 1):
        optimizer.zero_grad()
        scaler.scale(parameters[0].sum() + parameters[1].to("musa:0").sum()).backward()
        if spoiled is not None:
            parameters[spoiled].grad[0] = math.inf
        scaler.step(optimizer)
        scaler.update()
    assert [parameter.tolist() for parameter in parameters] == [[0, 0, 0], [0, 0, 0]]
    assert scaler.get_scale() == 2.0
