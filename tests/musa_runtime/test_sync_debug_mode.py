# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa.set_sync_debug_mode: implicit waits are reported, and nothing else is."""

import warnings

import pytest
import torch

MESSAGE = "called a synchronizing MUSA operation"


@pytest.fixture
def mode(musa):
    """A function that sets the mode; the default is restored afterwards."""
    yield musa.set_sync_debug_mode
    musa.set_sync_debug_mode("default")


@pytest.fixture
def x(musa):
    return torch.arange(12.0, device="musa").view(3, 4)


WAITS = {
    "item": lambda x: x[1, 1].item(),
    "bool": lambda x: bool(x.sum() > 3),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "cpu of a view": lambda x: x.t()[:, ::2].cpu(),
    "cpu and convert": lambda x: x.to("cpu", torch.float64),
    "copy from the host": lambda x: x.copy_(torch.ones(3, 4)),
    "musa": lambda x: torch.ones(3).to("musa"),
    "tensor": lambda x: torch.tensor([1, 2, 3], device="musa"),
    "stream": lambda x: torch.musa.current_stream().synchronize(),
    "torch's stream": lambda x: torch.accelerator.current_stream().synchronize(),
}
WAITS_FOR_SHAPES = {
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 3),
    "mask": lambda x: x[x > 3],
    "masked_select": lambda x: x.masked_select(x > 3),
    "mask put": lambda x: x.index_put_((x > 3,), torch.ones(8, device="musa")),
    "unique": lambda x: x.unique(),
    "unique_consecutive": lambda x: torch.unique_consecutive(x),
    "bincount": lambda x: x.long().flatten().bincount(),
    "repeat_interleave": lambda x: torch.repeat_interleave(
        torch.tensor([1, 2]).pin_memory().to("musa", non_blocking=True)
    ),
    "equal": lambda x: torch.equal(x, x + 1),
    "sparse": lambda x: x.to_sparse(),
}
ALL_WAITS = {**WAITS, **WAITS_FOR_SHAPES}


@pytest.mark.parametrize("wait", ALL_WAITS)
def test_a_wait_is_an_error_in_mode_error_and_works_afterwards(mode, x, wait):
    mode("error")
    with pytest.raises(RuntimeError, match=MESSAGE) as told:
        ALL_WAITS[wait](x)
    assert "set_sync_debug_mode" in str(told.value)
    mode("default")
    ALL_WAITS[wait](x)
    assert (x + 1).shape == (3, 4)


@pytest.mark.parametrize("wait", ALL_WAITS)
def test_a_wait_is_a_warning_in_mode_warn(mode, x, wait):
    mode("warn")
    with pytest.warns(UserWarning, match=MESSAGE):
        ALL_WAITS[wait](x)


@pytest.mark.parametrize("wait", ALL_WAITS)
def test_nothing_is_reported_by_default(mode, x, wait):
    mode("default")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ALL_WAITS[wait](x)


def work_that_does_not_wait(musa, x):
    y = torch.relu(x @ x.t()).sum(0, keepdim=True)
    y = torch.cat([y, torch.zeros(1, 3, device="musa")]).softmax(-1)
    x[torch.arange(2, device="musa")].add_(1)
    x.index_put_((torch.zeros(2, dtype=torch.long, device="musa"),), torch.ones(4, device="musa"))
    torch.masked_fill(x, x > 3, 0.0)
    torch.where(x > 3, x, -x)
    torch.rand(4, device="musa")
    host = torch.empty(2, 3, pin_memory=True)
    host.copy_(y, non_blocking=True)
    x.copy_(torch.ones(3, 4).pin_memory(), non_blocking=True)
    side = musa.Stream()
    side.wait_stream(musa.current_stream())
    event = side.record_event()
    event.query()
    musa.current_stream().wait_event(event)
    event.synchronize()
    musa.synchronize()
    torch.accelerator.synchronize()
    return host


def test_asynchronous_work_and_explicit_waits_are_not_reported(mode, musa, x):
    mode("error")
    host = work_that_does_not_wait(musa, x)
    mode("default")
    torch.testing.assert_close(host.sum(1), torch.ones(2))


def test_copies_between_devices_do_not_wait(mode, two_devices, x):
    mode("error")
    y = x.to("musa:1", non_blocking=True) + 1
    z = x.to("musa:1") + 1
    mode("default")
    assert torch.equal(y.cpu(), x.cpu() + 1) and torch.equal(z.cpu(), y.cpu())


def test_a_training_step_never_waits(mode, musa):
    layer = torch.nn.Linear(4, 2).to("musa")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x, target = torch.randn(3, 4).to("musa"), torch.tensor([0, 1, 1]).to("musa")
    mode("error")
    torch.nn.functional.cross_entropy(layer(x), target).backward()
    optimizer.step()
    mode("default")


def test_an_error_leaves_nothing_half_done(mode, x):
    host = torch.full((3, 4), -1.0)
    mode("error")
    with pytest.raises(RuntimeError, match=MESSAGE):
        host.copy_(x)
    mode("default")
    torch.musa.synchronize()
    assert host.eq(-1).all()


def test_a_wait_on_another_thread_is_reported_too(mode, x):
    from concurrent.futures import ThreadPoolExecutor

    mode("error")
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match=MESSAGE):
        pool.submit(lambda: x.sum().item()).result()


@pytest.mark.parametrize("given, answer", [("default", 0), ("warn", 1), ("error", 2), (0, 0), (1, 1), (2, 2)])
def test_modes_are_set_by_name_or_number(mode, musa, given, answer):
    mode(given)
    assert musa.get_sync_debug_mode() == answer


@pytest.mark.parametrize("wrong", ["loud", 3, -1, None, True, 1.5])
def test_another_mode_is_refused(mode, musa, wrong):
    mode("warn")
    with pytest.raises(ValueError, match="'default' \\(0\\), 'warn' \\(1\\) or 'error' \\(2\\)"):
        mode(wrong)
    assert musa.get_sync_debug_mode() == 1
