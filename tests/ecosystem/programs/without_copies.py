# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Training steps of scientific packages. On discrete memory they had operators that were computed on copies.

`python -m tests.ecosystem.programs.without_copies NAME` prints the operators that are computed on copies.
"""

from __future__ import annotations

import sys

import torch
from torch import nn


def train(model: nn.Module, loss: object) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def gpytorch() -> None:
    """Exact and variational Gaussian processes: Cholesky decompositions, triangular systems, samples."""
    import gpytorch

    class Exact(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    class Variational(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            distribution = gpytorch.variational.CholeskyVariationalDistribution(inducing.size(0))
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    for count, dtype in ((700, torch.float32), (60, torch.float64)):
        x = torch.linspace(0, 1, count, device="musa", dtype=dtype)
        y = torch.sin(6 * x)
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(x)
        model = Exact(x, y, likelihood).to(x)
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        train(model, lambda: -objective(model(x), y))  # noqa: B023
        model.eval()
        likelihood.eval()
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            prediction = likelihood(model(x[:20] + 0.01))
            prediction.sample(torch.Size((3,)))
            assert bool(prediction.variance.gt(0).all())
    x = torch.linspace(0, 1, 100, device="musa")
    model, likelihood = Variational(x[:20].clone()).to(x), gpytorch.likelihoods.GaussianLikelihood().to(x)
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, 100)
    train(model, lambda: -bound(model(x), torch.sin(6 * x)))


def torch_geometric() -> None:
    """Graph layers on lists of edges and on sparse adjacency matrices."""
    from torch_geometric import nn as layers
    from torch_geometric.utils import to_torch_csr_tensor

    edges = torch.randint(0, 50, (2, 300))
    x = torch.randn(50, 8, device="musa", requires_grad=True)
    kinds = ("GCNConv", "GATConv", "GATv2Conv", "SAGEConv", "GraphConv", "TransformerConv")
    for name in kinds:
        getattr(layers, name)(8, 3).to("musa")(x, edges.to("musa")).sum().backward()
    layers.ChebConv(8, 3, K=3).to("musa")(x, edges.to("musa")).sum().backward()
    matrix = to_torch_csr_tensor(edges, size=(50, 50)).to("musa")
    for name in ("GCNConv", "SAGEConv", "GraphConv"):
        getattr(layers, name)(8, 3).to("musa")(x, matrix).sum().backward()


def neuraloperator() -> None:
    """Fourier neural operators, with dense and factorized weights."""
    from neuralop.losses import H1Loss, LpLoss
    from neuralop.models import FNO, TFNO

    x = torch.randn(2, 1, 32, 32, device="musa")
    for kind, options in ((FNO, {}), (TFNO, {"factorization": "tucker", "rank": 0.3})):
        model = kind(n_modes=(8, 8), hidden_channels=16, in_channels=1, out_channels=1, n_layers=2, **options)
        model = model.to("musa")
        train(model, lambda: LpLoss(d=2)(model(x), x) + H1Loss(d=2)(model(x), x))  # noqa: B023


def spectrograms() -> None:
    """Short-time Fourier transforms and back, as torchaudio's transforms call them."""
    wave = torch.randn(2, 16000, device="musa", requires_grad=True)
    window = torch.hann_window(400, device="musa")
    spectrum = torch.stft(wave, 400, 200, window=window, return_complex=True)
    spectrum.abs().pow(2).clamp_min(1e-5).log10().sum().backward()
    back = torch.istft(spectrum.detach(), 400, 200, window=window, length=16000)
    torch.testing.assert_close(back, wave.detach(), rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
    print("copies:", *(row["op"] for row in torch.musa.ops.fallback_report()))
