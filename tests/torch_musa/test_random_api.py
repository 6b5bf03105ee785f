# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa's random numbers: seeds, states, and torch's functions that use them."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint


def draw(device="musa"):
    return torch.rand(8, device=device).cpu()


def test_equal_seeds_give_equal_numbers(musa):
    for seed in (musa.manual_seed, musa.manual_seed_all, torch.manual_seed):
        seed(11)
        first = draw()
        assert not torch.equal(first, draw())
        seed(11)
        assert torch.equal(first, draw())
        assert musa.initial_seed() == 11


def test_the_state_is_16_bytes_seed_then_offset(musa):
    musa.manual_seed(0x1234)
    state = musa.get_rng_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu" and state.numel() == 16
    assert state[:8].view(torch.int64).item() == 0x1234
    offset = state[8:].view(torch.int64).item()
    draw()
    assert musa.get_rng_state()[8:].view(torch.int64).item() > offset


def test_states_can_be_restored(musa):
    state = musa.get_rng_state()
    first = draw()
    musa.set_rng_state(state)
    assert torch.equal(first, draw())
    musa.set_rng_state(state, "musa:0")
    assert torch.equal(first, draw())


def test_a_state_that_is_set_is_not_aliased(musa):
    musa.init()
    state = musa.get_rng_state()
    first = draw()
    given = state.clone()
    musa.set_rng_state(given)
    given.zero_()
    assert torch.equal(first, draw())


def test_devices_have_generators_of_their_own(two_devices):
    musa = two_devices
    musa.manual_seed_all(5)
    states = musa.get_rng_state_all()
    assert len(states) == musa.device_count()
    first = draw("musa:1")
    assert torch.equal(musa.get_rng_state(0), states[0])  # drawing on one does not change the other
    musa.set_rng_state_all(states)
    assert torch.equal(first, draw("musa:1"))


def test_random_seeds(two_devices):
    musa = two_devices
    musa.seed()
    one = musa.initial_seed()
    musa.seed()
    assert musa.initial_seed() != one
    musa.seed_all()
    assert musa.default_generators[0].initial_seed() == musa.default_generators[1].initial_seed()


def test_default_generators_are_a_sequence(two_devices):
    generators = two_devices.default_generators
    assert len(generators) == two_devices.device_count()
    assert generators[-1].device == torch.device("musa", len(generators) - 1)
    assert [g.device.index for g in generators[:2]] == [0, 1]
    with pytest.raises(IndexError):
        generators[99]
    assert two_devices._get_generator(torch.device("musa:1")).device.index == 1


def test_fork_rng_restores(musa):
    musa.manual_seed(1)
    state = musa.get_rng_state()
    with musa.fork_rng():
        draw()
    assert torch.equal(state, musa.get_rng_state())
    with torch.random.fork_rng(devices=[0], device_type="musa"):
        draw()
    assert torch.equal(state, musa.get_rng_state())


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_replays_the_same_dropout(musa, reentrant):
    x = torch.ones(100, device="musa", requires_grad=True)
    seen = []

    def block(value):
        out = torch.nn.functional.dropout(value, 0.5)
        seen.append(out.detach().cpu())
        return out

    checkpoint(block, x, use_reentrant=reentrant).sum().backward()
    # The gradient comes from the second run, the output from the first: they agree only if the masks do.
    assert 0 < seen[0].count_nonzero() < 100
    assert torch.equal(x.grad.cpu(), seen[0])
