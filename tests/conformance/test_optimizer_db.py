# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch's optimizer database: every optimizer, in every implementation, steps as the plain one does on
the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.conformance import optimizers
from tests.conformance.catalogue import suite
from tests.conformance.comparison import require_same
from tests.conformance.transfer import to_device

_STEPS = 4
# Each of its steps has up to twenty iterations, and rounding errors grow a hundredfold per step: from 1e-13
# to 1e-7 in four steps, on any device.
_FEWER_STEPS = {"LBFGS": 2}
# It divides by vanishing differences of gradients: in single precision, rounding errors grow as large as
# weights.
_IN_DOUBLE = frozenset(("LBFGS",))


def _trained(case: optimizers.Case, device: str, kwargs: dict[str, Any]) -> tuple[list[torch.Tensor], dict]:
    """Parameters and optimizer state after a few steps on a small regression."""
    generator = torch.Generator().manual_seed(0)
    dtype = torch.float64 if case.info.optim_cls.__name__ in _IN_DOUBLE else torch.float32
    first = torch.randn(6, 4, generator=generator, dtype=dtype)
    second = torch.randn(4, 3, generator=generator, dtype=dtype)
    inputs = torch.randn(8, 6, generator=generator, dtype=dtype).to(device)
    targets = torch.randn(8, 3, generator=generator, dtype=dtype).to(device)
    parameters = [torch.nn.Parameter(weight.to(device)) for weight in (first, second)]
    if kwargs.get("differentiable"):
        # Autograd records these steps, so the parameters must not be leaves.
        parameters = [parameter.clone() for parameter in parameters]
    optimizer = case.info.optim_cls(parameters, **kwargs)

    def closure() -> torch.Tensor:
        hidden = torch.tanh(inputs @ parameters[0])
        loss = torch.nn.functional.mse_loss(hidden @ parameters[1], targets)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
            parameter.grad = gradient.to_sparse() if case.info.only_supports_sparse_grads else gradient
        return loss

    for _ in range(_FEWER_STEPS.get(case.info.optim_cls.__name__, _STEPS)):
        if case.info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return [parameter.detach() for parameter in parameters], optimizer.state_dict()["state"]


@suite("optimizer", "steps")
def test_steps_equal_cpu(case: optimizers.Case, device: str, count: Callable) -> None:
    done = 0
    for description, reference, tested in case.settings():
        if device == "cpu" and "capturable" in tested:
            tested.pop("capturable")
        (tested,) = to_device(device, tested)
        expected = _trained(case, "cpu", reference)
        actual = _trained(case, device, tested)
        path = f"{description}: parameters"
        require_same(expected[0], actual[0], device, tolerance=case.tolerance, path=path)
        assert expected[1].keys() == actual[1].keys(), f"{description}: other optimizer state"
        done += 1
    count(done)


def test_an_optimizer_that_steps_differently_is_refused(device: str) -> None:
    case = next(case for case in optimizers.cases() if case.name == "SGD" and case.kind == "plain")
    expected, _ = _trained(case, "cpu", {"lr": 0.1})
    actual, _ = _trained(case, device, {"lr": 0.11})
    with pytest.raises(AssertionError, match="not close"):
        require_same(expected, actual, device)
