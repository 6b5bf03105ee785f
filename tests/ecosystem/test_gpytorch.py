# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""gpytorch and botorch: Gaussian processes and acquisition functions on musa as on the CPU."""

from __future__ import annotations

import botorch
import gpytorch
import pytest
import torch

from tests.ecosystem.training import gradients, steps


def points(device: str, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.linspace(0, 1, 16, dtype=dtype)
    return x[:, None].to(device), torch.sin(6 * x).to(device)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


KERNELS = {
    "rbf": lambda: gpytorch.kernels.RBFKernel(),
    "matern": lambda: gpytorch.kernels.MaternKernel(nu=2.5),
    "periodic": lambda: gpytorch.kernels.PeriodicKernel(),
    "linear and rbf": lambda: gpytorch.kernels.LinearKernel() + gpytorch.kernels.RBFKernel(),
}


@pytest.mark.parametrize("name", KERNELS)
def test_exact_process(name, both):
    def program(device):
        x, y = points(device)
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        model = Exact(x, y, likelihood, KERNELS[name]()).to(x)
        likelihood.to(x)
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        losses = steps(model, lambda: -objective(model(x), y), 3)
        found = {"losses": losses, "gradients": gradients(model)}
        model.eval()
        likelihood.eval()
        with torch.no_grad():
            prediction = likelihood(model(x + 0.03))
            return {**found, "mean": prediction.mean, "variance": prediction.variance}

    both(program, within=1e-6)


def test_variational_process(both):
    class Variational(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            distribution = gpytorch.variational.CholeskyVariationalDistribution(
                len(inducing), mean_init_std=0.0
            )
            strategy = gpytorch.variational.VariationalStrategy(self, inducing, distribution)
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.RBFKernel()

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def program(device):
        x, y = points(device)
        model, likelihood = Variational(x[::4].cpu()).to(x), gpytorch.likelihoods.GaussianLikelihood().to(x)
        objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
        return steps(model, lambda: -objective(model(x), y), 3)

    both(program, within=1e-5)


def test_multitask_process(both):
    def program(device):
        x, y = points(device)
        model = botorch.models.KroneckerMultiTaskGP(x, torch.stack([y, y.cos()], -1))
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        model.train()
        losses = steps(model, lambda: -objective(model(x), model.train_targets), 2)
        with torch.no_grad():
            return [losses, model.eval().posterior(x[:3] + 0.01).mean]

    both(program, within=1e-5)


ACQUISITIONS = {
    "expected improvement": lambda model, best: botorch.acquisition.LogExpectedImprovement(model, best),
    "upper confidence bound": lambda model, best: botorch.acquisition.UpperConfidenceBound(model, beta=0.2),
    "batch": lambda model, best: botorch.acquisition.qLogExpectedImprovement(
        model, best, botorch.sampling.SobolQMCNormalSampler(torch.Size([16]), seed=1)
    ),
}


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_acquisition(name, both):
    def program(device):
        x, y = points(device)
        model = botorch.models.SingleTaskGP(x, y[:, None])
        candidates = torch.full((2, 1, 1), 0.4, dtype=x.dtype)
        candidates[1] = 0.7
        candidates = candidates.to(device).requires_grad_()
        values = ACQUISITIONS[name](model, y.max())(candidates)
        values.sum().backward()
        return [values, candidates.grad]

    both(program, within=1e-5)


def test_fit_and_optimize(both):
    """The optimizers of scipy use values and gradients from the device."""

    def program(device):
        x, y = points(device)
        model = botorch.models.SingleTaskGP(x, y[:, None])
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        botorch.fit_gpytorch_mll(objective)
        bounds = torch.tensor([[0.0], [1.0]], dtype=x.dtype, device=device)
        # The bound is flat at its optimum: values are compared, not positions.
        _, value = botorch.optim.optimize_acqf(
            botorch.acquisition.UpperConfidenceBound(model, beta=0.1),
            bounds,
            q=1,
            num_restarts=2,
            raw_samples=8,
            options={"seed": 1},
        )
        return value

    both(program, within=1e-3)
