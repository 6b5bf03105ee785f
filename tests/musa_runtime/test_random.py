# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The generator: a counter-based sequence of numbers whose whole state is a seed and an offset."""

import struct

import pytest
import torch


def _state(generator):
    return struct.unpack("<Qq", bytes(generator.get_state().tolist()))


@pytest.fixture
def generator(musa):
    return torch.Generator("musa").manual_seed(1234)


def test_the_state_is_the_seed_and_the_offset(generator):
    state = generator.get_state()
    assert (state.dtype, state.shape, state.device.type) == (torch.uint8, (16,), "cpu")
    assert _state(generator) == (1234, 0)


def test_drawing_advances_the_offset_and_not_the_seed(generator):
    torch.rand(1000, device="musa", generator=generator)
    seed, first = _state(generator)
    torch.rand(1000, device="musa", generator=generator)
    assert seed == _state(generator)[0] == 1234
    assert 0 < first < _state(generator)[1]


def test_the_offset_can_be_set(generator):
    generator.set_offset(64)
    assert _state(generator) == (1234, 64)
    assert generator.get_offset() == 64
    x = torch.rand(100, device="musa", generator=generator)
    generator.set_offset(64)
    assert torch.equal(x, torch.rand(100, device="musa", generator=generator))


def test_other_offsets_give_other_numbers(generator):
    first = torch.rand(100, device="musa", generator=generator)
    second = torch.rand(100, device="musa", generator=generator)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    "state",
    [torch.zeros(8, dtype=torch.uint8), torch.zeros(16), torch.zeros(5056, dtype=torch.uint8)],
    ids=["too short", "floating point", "of the cpu generator"],
)
def test_a_state_of_another_kind_is_refused(generator, state):
    before = _state(generator)
    with pytest.raises((RuntimeError, TypeError)):
        generator.set_state(state)
    assert _state(generator) == before


def test_a_clone_is_independent(generator):
    torch.rand(10, device="musa", generator=generator)
    twin = generator.clone_state()
    x = torch.rand(50, device="musa", generator=generator)
    assert torch.equal(x, torch.rand(50, device="musa", generator=twin))
    torch.rand(50, device="musa", generator=twin)
    assert _state(twin) != _state(generator)


def test_a_graph_safe_state_is_shared(generator):
    other = torch.Generator("musa")
    other.graphsafe_set_state(generator.graphsafe_get_state())
    torch.rand(10, device="musa", generator=other)
    assert _state(other) == _state(generator)
    assert _state(generator)[1] > 0


def test_a_generator_of_another_device_type_is_refused(generator):
    with pytest.raises((RuntimeError, ValueError), match=r"(?i)device"):
        torch.rand(4, generator=generator)
    with pytest.raises((RuntimeError, ValueError), match=r"(?i)device"):
        torch.rand(4, device="musa", generator=torch.Generator())


def test_torch_manual_seed_seeds_every_device(two_devices):
    torch.manual_seed(77)
    assert {generator.initial_seed() for generator in two_devices.default_generators} == {77}
    first = [torch.rand(5, device=f"musa:{index}").cpu() for index in range(2)]
    torch.manual_seed(77)
    second = [torch.rand(5, device=f"musa:{index}").cpu() for index in range(2)]
    assert all(torch.equal(left, right) for left, right in zip(first, second))


def test_drawing_on_the_device_does_not_change_the_cpu_generator(musa):
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    torch.rand(100, device="musa")
    torch.nn.functional.dropout(torch.ones(10, device="musa"))
    torch.randperm(10, device="musa")
    assert torch.equal(torch.rand(4), expected)


def test_drawing_on_the_cpu_does_not_change_the_device_generator(musa):
    torch.manual_seed(5)
    expected = torch.rand(4, device="musa")
    torch.manual_seed(5)
    torch.rand(100)
    assert torch.equal(torch.rand(4, device="musa"), expected)


_DRAWS = {
    "rand": lambda **kw: torch.rand(64, **kw),
    "randn": lambda **kw: torch.randn(64, **kw),
    "randint": lambda **kw: torch.randint(0, 1000, (64,), **kw),
    "randperm": lambda **kw: torch.randperm(64, **kw),
    "bernoulli": lambda generator, device: torch.bernoulli(
        torch.full((64,), 0.5, device=device), generator=generator
    ),
    "multinomial": lambda generator, device: torch.multinomial(
        torch.ones(64, device=device), 32, generator=generator
    ),
    "poisson": lambda generator, device: torch.poisson(
        torch.full((64,), 9.0, device=device), generator=generator
    ),
    "normal": lambda generator, device: torch.normal(
        torch.zeros(64, device=device), 2.0, generator=generator
    ),
    "normal of sizes": lambda generator, device: torch.normal(
        0.0, 1.0, (64,), device=device, generator=generator
    ),
}
for _name, _arguments in {
    "uniform_": (),
    "normal_": (),
    "exponential_": (),
    "cauchy_": (),
    "log_normal_": (),
    "geometric_": (0.3,),
    "random_": (),
    "bernoulli_": (0.4,),
}.items():
    _DRAWS[_name] = lambda generator, device, name=_name, arguments=_arguments: getattr(
        torch.empty(64, device=device), name
    )(*arguments, generator=generator)


@pytest.mark.parametrize("draw", list(_DRAWS.values()), ids=list(_DRAWS))
def test_every_way_to_draw_follows_the_generator(generator, draw):
    first = draw(device="musa", generator=generator)
    offset = _state(generator)[1]
    assert offset > 0, "the offset did not advance"
    second = draw(device="musa", generator=generator)
    assert not torch.equal(first, second)
    generator.manual_seed(1234)
    assert torch.equal(first, draw(device="musa", generator=generator))
    assert _state(generator)[1] == offset


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda n: torch.rand(n, device="musa"), 0.5, 12**-0.5),
        (lambda n: torch.randn(n, device="musa"), 0.0, 1.0),
        (lambda n: torch.empty(n, device="musa").uniform_(-1, 3), 1.0, 4 / 12**0.5),
        (lambda n: torch.empty(n, device="musa").normal_(2, 3), 2.0, 3.0),
        (lambda n: torch.empty(n, device="musa").exponential_(2), 0.5, 0.5),
        (lambda n: torch.empty(n, device="musa").bernoulli_(0.3), 0.3, 0.21**0.5),
        (lambda n: torch.randint(0, 101, (n,), device="musa").float(), 50.0, (101**2 / 12) ** 0.5),
        (lambda n: torch.poisson(torch.full((n,), 4.0, device="musa")), 4.0, 2.0),
        (lambda n: torch.nn.functional.dropout(torch.ones(n, device="musa"), 0.25), 1.0, (1 / 3) ** 0.5),
    ],
    ids=["rand", "randn", "uniform", "normal", "exponential", "bernoulli", "randint", "poisson", "dropout"],
)
def test_draws_have_the_mean_and_deviation_of_their_distribution(musa, draw, mean, deviation):
    n = 100_000
    torch.manual_seed(11)
    x = draw(n).cpu().double()
    # Six standard errors of the mean; the deviation of these distributions converges at least as fast.
    assert abs(x.mean().item() - mean) < 6 * deviation / n**0.5
    assert abs(x.std().item() - deviation) < 0.03 * deviation


def test_a_permutation_has_every_number_once(musa):
    assert torch.randperm(1000, device="musa").sort().values.cpu().tolist() == list(range(1000))


def test_fork_rng_restores_cpu_and_device(musa):
    torch.manual_seed(9)
    cpu, state = torch.get_rng_state(), musa.get_rng_state()
    with torch.random.fork_rng(device_type="musa"):
        torch.rand(10)
        torch.rand(10, device="musa")
        torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), cpu)
    assert torch.equal(musa.get_rng_state(), state)


def test_large_draws_are_reproducible_across_shapes_of_the_same_size(generator):
    x = torch.rand(300, 400, device="musa", generator=generator)
    generator.manual_seed(1234)
    assert torch.equal(x.view(-1), torch.rand(120_000, device="musa", generator=generator))


# Every call that draws from a generator, with tensors or sizes on a device.
DRAWS = {
    "rand": lambda device, g: torch.rand(5, generator=g, device=device),
    "randn": lambda device, g: torch.randn(5, generator=g, device=device),
    "randint": lambda device, g: torch.randint(5, (3,), generator=g, device=device),
    "randperm": lambda device, g: torch.randperm(5, generator=g, device=device),
    "normal": lambda device, g: torch.normal(torch.ones(3, device=device), 1.0, generator=g),
    "bernoulli": lambda device, g: torch.bernoulli(torch.ones(3, device=device), generator=g),
    "multinomial": lambda device, g: torch.multinomial(torch.ones(3, device=device), 1, generator=g),
    "poisson": lambda device, g: torch.poisson(torch.ones(3, device=device), generator=g),
    "gamma": lambda device, g: torch._standard_gamma(torch.ones(3, device=device), generator=g),
    "dirichlet": lambda device, g: torch._sample_dirichlet(torch.ones(3, device=device), generator=g),
    "binomial": lambda device, g: torch.binomial(*torch.ones(2, 3, device=device), generator=g),
    "normal_": lambda device, g: torch.empty(3, device=device).normal_(generator=g),
    "uniform_": lambda device, g: torch.empty(3, device=device).uniform_(generator=g),
    "random_": lambda device, g: torch.empty(3, device=device).random_(generator=g),
    "exponential_": lambda device, g: torch.empty(3, device=device).exponential_(generator=g),
    "geometric_": lambda device, g: torch.empty(3, device=device).geometric_(0.5, generator=g),
    "log_normal_": lambda device, g: torch.empty(3, device=device).log_normal_(generator=g),
    "cauchy_": lambda device, g: torch.empty(3, device=device).cauchy_(generator=g),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize(("device", "other"), [("cpu", "musa"), ("musa", "cpu")])
def test_a_generator_of_another_device_is_refused_by_name(musa, draw, device, other):
    # torch's randperm has the second form.
    expected = f"Expected a '{device}' (device type for generator|generator device) but found '{other}"
    with pytest.raises(RuntimeError, match=expected):
        DRAWS[draw](device, torch.Generator(other))
    DRAWS[draw](device, torch.Generator(device))
