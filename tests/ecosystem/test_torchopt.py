# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torchopt: functional and differentiable optimizers on musa as on the CPU."""

from __future__ import annotations

import pytest
import torch
import torchopt

from tests.ecosystem.tiny import images

OPTIMIZERS = {
    "adam": lambda: torchopt.adam(lr=0.1),
    "adamw": lambda: torchopt.adamw(lr=0.1, weight_decay=0.1),
    "sgd": lambda: torchopt.sgd(lr=0.1, momentum=0.9),
    "rmsprop": lambda: torchopt.rmsprop(lr=0.1),
    "adagrad": lambda: torchopt.adagrad(lr=0.1),
    "chain": lambda: torchopt.chain(torchopt.clip.clip_grad_norm(1.0), torchopt.sgd(lr=0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_functional_optimizers(name, both):
    def program(device):
        x, target = images(8, 4).to(device), images(8, 2, seed=2).to(device)
        parameters = (images(4, 2, seed=3).to(device).requires_grad_(),)
        optimizer = OPTIMIZERS[name]()
        state = optimizer.init(parameters)
        losses = []
        for _ in range(4):
            loss = (x @ parameters[0] - target).square().mean()
            updates, state = optimizer.update(
                torch.autograd.grad(loss, parameters), state, params=parameters, inplace=False
            )
            parameters = tuple(
                p.detach().requires_grad_()
                for p in torchopt.apply_updates(parameters, updates, inplace=False)
            )
            losses.append(loss.detach())
        return [losses, parameters[0]]

    both(program, within=1e-5)


def test_a_gradient_through_an_optimizer(both):
    """The step of an inner optimizer is differentiated for an outer parameter."""

    def program(device):
        torch.manual_seed(0)
        inner = torch.nn.Linear(3, 1).to(device)
        outer = torch.ones(3, device=device, requires_grad=True)
        optimizer = torchopt.MetaAdam(inner, lr=0.1)
        x = images(6, 3).to(device)
        for _ in range(2):
            optimizer.step((inner(x * outer)).square().mean())
        loss = inner(x).square().mean()
        return [loss, torch.autograd.grad(loss, outer)[0]]

    both(program, within=1e-4)


def test_implicit_gradient(both):
    """The optimum of a ridge regression is differentiated implicitly."""

    def program(device):
        x, y = images(12, 3).to(device), images(12, 1, seed=2).to(device)

        def optimality(weights, penalty):
            return torch.func.grad(lambda w: ((x @ w - y).square().sum() + penalty * w.square().sum()) / 2)(
                weights
            )

        @torchopt.diff.implicit.custom_root(
            optimality, argnums=1, solve=torchopt.linear_solve.solve_normal_cg()
        )
        def solution(weights, penalty):
            return torch.linalg.solve(x.T @ x + penalty * torch.eye(3, device=device), x.T @ y)

        penalty = torch.tensor(0.5, device=device, requires_grad=True)
        found = solution(torch.zeros(3, 1, device=device), penalty)
        return [found, torch.autograd.grad(found.sum(), penalty)[0]]

    both(program, within=1e-3)
