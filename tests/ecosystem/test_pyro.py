# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""pyro: variational inference, samplers and distributions on musa."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO
from pyro.infer.autoguide import AutoDelta, init_to_value

from tests.ecosystem.tiny import images


@pytest.fixture(autouse=True)
def _fresh():
    pyro.clear_param_store()
    yield
    pyro.clear_param_store()


def test_variational_inference(both):
    """A point estimate, which needs no random numbers."""

    def program(device):
        pyro.clear_param_store()
        x = images(30, 2).to(device)
        y = x @ torch.tensor([1.0, -2.0], device=device) + 0.5

        def model():
            weight = pyro.sample("weight", dist.Normal(torch.zeros(2, device=device), 1.0).to_event(1))
            bias = pyro.sample("bias", dist.Normal(torch.zeros((), device=device), 1.0))
            with pyro.plate("rows", 30):
                pyro.sample("y", dist.Normal(x @ weight + bias, 0.1), obs=y)

        start = {"weight": torch.zeros(2, device=device), "bias": torch.zeros((), device=device)}
        guide = AutoDelta(model, init_loc_fn=init_to_value(values=start))
        inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
        losses = [inference.step() for _ in range(10)]
        return {"losses": losses, "values": {name: p.detach() for name, p in pyro.get_param_store().items()}}

    both(program, within=1e-4)


def test_enumerated_mixture(both):
    def program(device):
        pyro.clear_param_store()
        data = torch.tensor([0.0, 1.0, 10.0, 11.0, 12.0], device=device)

        @pyro.infer.config_enumerate
        def model():
            weights = pyro.param("weights", torch.tensor([0.5, 0.5], device=device))
            places = pyro.param("places", torch.tensor([1.0, 9.0], device=device))
            with pyro.plate("rows", len(data)):
                which = pyro.sample("which", dist.Categorical(weights))
                pyro.sample("x", dist.Normal(places[which], 1.0), obs=data)

        inference = SVI(
            model, lambda: None, pyro.optim.Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1)
        )
        return [inference.step() for _ in range(5)]

    both(program, within=1e-4)


def test_no_u_turn_sampler(both):
    """Chains draw on the device, so the tolerance for the mean is the sampler's own error."""

    def program(device):
        data = torch.tensor([1.0, 2.0, 3.0], device=device)

        def model():
            place = pyro.sample("place", dist.Normal(torch.zeros((), device=device), 10.0))
            pyro.sample(
                "x", dist.Normal(place, torch.ones((), device=device)).expand([3]).to_event(1), obs=data
            )

        sampler = MCMC(NUTS(model), num_samples=60, warmup_steps=30, disable_progbar=True)
        sampler.run()
        drawn = sampler.get_samples()["place"]
        assert drawn.device.type == device
        return drawn.mean()

    both(program, within=0.3)


DISTRIBUTIONS = {
    "normal": lambda d: dist.Normal(torch.zeros(3, device=d), 1.0),
    "gamma": lambda d: dist.Gamma(torch.ones(3, device=d) * 2, torch.ones(3, device=d)),
    "dirichlet": lambda d: dist.Dirichlet(torch.ones(3, device=d)),
    "categorical": lambda d: dist.Categorical(torch.tensor([0.2, 0.3, 0.5], device=d)),
    "multivariate normal": lambda d: dist.MultivariateNormal(
        torch.zeros(3, device=d), torch.eye(3, device=d)
    ),
    "student t": lambda d: dist.StudentT(torch.full((3,), 5.0, device=d)),
    "poisson": lambda d: dist.Poisson(torch.full((3,), 4.0, device=d)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name, both):
    """Log probabilities of the same values; samples are on the device and repeat with the seed."""

    def program(device):
        made = DISTRIBUTIONS[name](device)
        pyro.set_rng_seed(1)
        first = made.sample((4,))
        pyro.set_rng_seed(1)
        assert torch.equal(first, made.sample((4,))) and first.device.type == device
        values = DISTRIBUTIONS[name]("cpu")
        torch.manual_seed(2)
        return made.log_prob(values.sample((4,)).to(device))

    both(program, within=1e-4)


def test_prediction(both):
    def program(device):
        def model():
            return pyro.sample("y", dist.Normal(torch.ones(4, device=device), 1e-6).to_event(1))

        return Predictive(model, num_samples=3)()["y"]

    both(program, within=1e-4)
