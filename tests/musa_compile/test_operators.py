# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch's operator database under Inductor: compiled on musa against eager mode on the CPU, with gradients.

Operands are contiguous, and permuted: generated loops follow the order of memory. A sample of the operators
runs by itself, all of them with --full.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree

from tests.conformance import operators
from tests.conformance.comparison import Mismatch, outcome_of, require_same
from tests.conformance.operators import Case
from tests.conformance.transfer import to_device

SAMPLES = 2  # of each operator
ONE_IN = 60  # operators of the run without --full

# What fails compiled for the CPU as well, with torch's error. Each is checked to do so.
TORCHS_OWN = {
    "item": "fake tensors are made within a region that forbids it",
}

pytestmark = [pytest.mark.once, pytest.mark.slow]

# Their results are other numbers by design: random ones, and memory that nothing was written to.
OTHER_NUMBERS = {"empty_like", "empty", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


def cases() -> list[Any]:
    found = [
        case
        for case in operators.forward_cases()
        if case.dtype is torch.float32
        and case.layout is torch.strided
        and case.name not in OTHER_NUMBERS
        and "nn.functional.dropout" not in case.name
    ]
    sampled = set(map(str, found[::ONE_IN]))
    return [
        pytest.param(case, id=case.name, marks=[] if str(case) in sampled else [pytest.mark.full])
        for case in found
    ]


def permuted(value: Any) -> Any:
    """The same values, with the last two dimensions exchanged in memory."""
    if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.layout is not torch.strided:
        return value
    other = value.detach().transpose(-1, -2).contiguous().transpose(-1, -2)
    return other.requires_grad_(value.requires_grad)


def arguments_of(case: Case) -> list[tuple[Any, ...]]:
    """(input, args, kwargs) of each sample in both forms; permuted only where eager mode takes it."""
    gradients = case.op.supports_autograd
    found = []
    for sample in list(case.samples(True, requires_grad=gradients))[:SAMPLES]:
        plain = (sample.input, sample.args, sample.kwargs)
        found.append(plain)
        other = pytree.tree_map(permuted, plain)
        value, args, kwargs = to_device("cpu", *other)
        if outcome_of(lambda: case.op(value, *args, **kwargs)).error is None:  # noqa: B023 - called at once
            found.append(other)
    return found


def results_of(call: Any, arguments: list[tuple[Any, ...]], device: str) -> tuple[Any, Any]:
    """What `call` returns for the arguments on a device, and the gradients of a sum of it."""
    moved = [to_device(device, *each) for each in arguments]
    outputs = call(moved)
    sums = [
        value.abs().sum()
        for value in pytree.tree_leaves(outputs)
        if isinstance(value, torch.Tensor) and value.requires_grad
    ]
    leaves = [leaf for leaf in pytree.tree_leaves(moved) if isinstance(leaf, torch.Tensor) and leaf.is_leaf]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    gradients = torch.autograd.grad(sum(sums), wanted, allow_unused=True) if sums and wanted else ()
    return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, (outputs, gradients))


def differences(case: Case, device: str) -> str | None:
    """How the compiled operator on `device` differs from eager mode on the CPU."""

    def program(arguments: list[tuple[Any, ...]]) -> list[Any]:
        return [case.op(value, *args, **kwargs) for value, args, kwargs in arguments]

    arguments = arguments_of(case)
    expected = results_of(program, arguments, "cpu")
    torch._dynamo.reset()
    try:
        actual = results_of(torch.compile(program), arguments, device)
        require_same(expected, actual, device, tolerance=case.tolerance_of_gradients)
    except (Mismatch, Exception) as error:  # noqa: BLE001 - what fails on the CPU as well is torch's own
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("case", cases())
def test_compiled_as_eager(compiler: None, case: Case) -> None:
    found = differences(case, "musa")
    if case.name in TORCHS_OWN:
        assert found is not None, f"{case.name} works now: remove it from the list"
        assert differences(case, "cpu") is not None, f"only on musa: {found}"
    else:
        assert found is None
