# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""PyTorch's module database: every module computes on the device what it computes on the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from tests.conformance import modules
from tests.conformance.catalogue import suite
from tests.conformance.comparison import require_same
from tests.conformance.transfer import tensors_in, to_device


def _built(case: modules.Case, module_input: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    # Copied: loss weights become buffers, and a test that writes to them must not change the next one's
    # arguments.
    constructor = copy.deepcopy(module_input.constructor_input)
    module = case.info.module_cls(*constructor.args, **constructor.kwargs).to(modules.DTYPE)
    module.train(case.training)
    if case.info.is_lazy:
        # Its parameters take their shapes from the first input.
        module(
            *copy.deepcopy(module_input.forward_input.args),
            **copy.deepcopy(module_input.forward_input.kwargs),
        )
    return module


def _backward(module: torch.nn.Module, arguments: tuple, result: Any) -> dict[str, Any]:
    outputs = [out for out in tensors_in(result) if out.requires_grad]
    if outputs:
        # Weights that differ from element to element: a plain sum hides permuted gradients.
        sum(
            (out * torch.linspace(0.5, 1.5, out.numel()).to(out.device).view_as(out)).sum() for out in outputs
        ).backward()
    return {
        "parameters": {name: parameter.grad for name, parameter in module.named_parameters()},
        "inputs": [
            tensor.grad for tensor in tensors_in(arguments) if tensor.is_leaf and tensor.requires_grad
        ],
    }


@suite("module", "forward and backward")
def test_forward_and_backward_equal_cpu(case: modules.Case, device: str, count: Callable) -> None:
    done = 0
    for module_input in case.inputs():
        on_cpu = _built(case, module_input)
        on_device = copy.deepcopy(on_cpu).to(device)
        forward = (module_input.forward_input.args, module_input.forward_input.kwargs)
        cpu_arguments, device_arguments = to_device("cpu", *forward), to_device(device, *forward)
        expected = on_cpu(*cpu_arguments[0], **cpu_arguments[1])
        actual = on_device(*device_arguments[0], **device_arguments[1])
        require_same(expected, actual, device, tolerance=case.tolerance, path=f"input {done}, result")
        gradients = _backward(on_cpu, cpu_arguments, expected), _backward(on_device, device_arguments, actual)
        require_same(*gradients, device, tolerance=case.tolerance, path=f"input {done}, gradients")
        # Running statistics and the like.
        buffers = dict(on_cpu.named_buffers()), dict(on_device.named_buffers())
        require_same(*buffers, device, tolerance=case.tolerance, path=f"input {done}, buffers")
        done += 1
    count(done)


@suite("module", "state")
def test_state_moves_to_the_device_and_back(case: modules.Case, device: str, count: Callable) -> None:
    done = 0
    for module_input in case.inputs():
        module = _built(case, module_input)
        original = copy.deepcopy(module.state_dict())
        parameters = list(module.parameters())
        module.to(device)
        assert all(tensor.device.type == device for tensor in [*module.parameters(), *module.buffers()])
        assert all(left is right for left, right in zip(parameters, module.parameters())), (
            "a parameter was replaced"
        )
        require_same(dict(original), dict(module.state_dict()), device, path="state on the device")
        other = _built(case, module_input)
        for tensor in [*other.parameters(), *other.buffers()]:
            tensor.data.zero_()
        other.load_state_dict(module.state_dict())
        require_same(dict(original), dict(other.state_dict()), "cpu", path="state loaded back on the cpu")
        require_same(dict(original), dict(module.to("cpu").state_dict()), "cpu", path="state moved back")
        done += 1
    count(done)
