# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch's operator database under Inductor: compiled on musa against eager mode on the CPU, with gradients.

Operands are contiguous and permuted, because generated loops follow the order of memory. A run without --full
tests a sample of the operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.utils._pytree as pytree

from tests.conformance import operators
from tests.conformance.comparison import Mismatch, outcome_of, require_same
from tests.conformance.operators import Case
from tests.conformance.variants import arguments_on

SAMPLES = 2  # of each operator
ONE_IN = 60  # operators; the share that runs without --full
SLOW = {"linalg.householder_product"}  # takes a minute to compile, so it runs with --full only

# Operators that fail compiled for the CPU as well, as the test checks, with torch's error.
TORCHS_OWN = {
    "item": "fake tensors are made within a region that forbids it",
    "nn.functional.feature_alpha_dropout.without_train": "the same",
    "nn.functional.max_pool3d": "indices of permuted operands count in the order of memory",
    "view_copy": "the view of permuted operands is not possible without a copy",
}
# Operators that may differ in the last digits, on the CPU as well, depending on the processor's vector units.
LAST_DIGITS = ("erfinv", "special.hermite_polynomial_he")
# Operators that differ on musa alone, without a wrong number.
OTHER_STATISTICS = (
    "in eval mode the saved statistics, which nothing reads, are of shape (0,) in eager mode and on the CPU; "
    "torch's decomposition for other devices gives them the shape (C,)"
)
DIFFERENT = {"native_batch_norm": OTHER_STATISTICS, "_native_batch_norm_legit": OTHER_STATISTICS}

pytestmark = [pytest.mark.once, pytest.mark.slow]

# Their results are uninitialized memory, so the values differ.
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
    sampled = {str(case) for case in [case for case in found if case.name not in SLOW][::ONE_IN]}
    return [
        pytest.param(case, id=case.name, marks=[] if str(case) in sampled else [pytest.mark.full])
        for case in found
    ]


def permuted(value: Any) -> Any:
    """The same values, with the order of the last two dimensions exchanged in memory."""
    if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.layout is not torch.strided:
        return value
    other = value.detach().transpose(-1, -2).contiguous().transpose(-1, -2)
    return other.requires_grad_(value.requires_grad)


class Arguments(NamedTuple):
    """The arguments of one call of an operator."""

    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def arguments_of(case: Case) -> list[Arguments]:
    """The arguments of each sample in both forms; the permuted one only if eager mode takes it, with
    gradient."""
    gradients = case.op.supports_autograd
    found = []
    for sample in list(case.samples(True, requires_grad=gradients))[:SAMPLES]:
        plain = Arguments(sample.input, sample.args, sample.kwargs)
        found.append(plain)
        other = pytree.tree_map(permuted, plain)
        if outcome_of(lambda: results_of(case, program_of(case), [other], "cpu")).error is None:  # noqa: B023 - called at once
            found.append(other)
    return found


def program_of(case: Case) -> Callable[[list[Arguments]], list[Any]]:
    """Calls the operator with each of the given arguments."""

    def program(arguments: list[Arguments]) -> list[Any]:
        return [case.op(value, *args, **kwargs) for value, args, kwargs in arguments]

    return program


def results_of(case: Case, call: Any, arguments: list[Arguments], device: str) -> tuple[Any, Any]:
    """The results of `call` for the arguments on a device, and the gradients of their sum."""
    moved = [Arguments(*arguments_on(case.op, each, device)) for each in arguments]
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
    """The difference of the compiled operator on `device` from eager mode on the CPU, or None."""
    program, arguments = program_of(case), arguments_of(case)
    expected = results_of(case, program, arguments, "cpu")
    torch._dynamo.reset()
    try:
        actual = results_of(case, torch.compile(program), arguments, device)
        require_same(expected, actual, device, tolerance=case.tolerance_of_gradients)
    except (Mismatch, Exception) as error:  # noqa: BLE001 - any failure is compared with the CPU's
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("case", cases())
def test_compiled_as_eager(compiler: None, case: Case) -> None:
    found = differences(case, "musa")
    if case.name in DIFFERENT:
        assert found is not None and "shape" in found, found
    elif case.name in LAST_DIGITS:
        assert found is None or differences(case, "cpu") is not None, f"only on musa: {found}"
    elif case.name in TORCHS_OWN:
        assert found is not None, f"{case.name} works now. Fix: remove it from the list"
        assert differences(case, "cpu") is not None, f"only on musa: {found}"
    else:
        assert found is None
