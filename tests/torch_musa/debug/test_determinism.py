# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.debug.check_determinism` names the first operator whose result differs in a second run."""

import pytest
import torch

from tests.harness.subprocesses import run_code
from tests.torch_musa.debug.planted import planted, varying
from tests.torch_musa.debug.programs import GPT, ResNet, Training
from torch_musa import debug

pytestmark = pytest.mark.usefixtures("musa")


@pytest.mark.parametrize("model", [ResNet, GPT])
def test_a_training_step_is_the_same_twice(model):
    step = Training(model())  # with dropout, whose random state is restored
    outcome = debug.check_determinism(step, restore=[step.model, step.optimizer])
    assert outcome.deterministic and outcome.operators > 150, str(outcome)


@pytest.mark.parametrize(
    ("model", "operator", "module", "phase"),
    [
        (ResNet, "relu", "ResNet.layer1.act", "forward"),
        (ResNet, "threshold_backward", "ResNet.layer2.act", "backward"),
        (GPT, "gelu", "GPT.layers.0.mlp.1", "forward"),
        (GPT, "gelu_backward", "GPT.layers.1.mlp.1", "backward"),
    ],
    ids=lambda value: str(value),
)
def test_the_first_operator_that_varies_is_named_with_its_module(model, operator, module, phase):
    step = Training(model())
    with planted(operator, varying(operator)):
        outcome = debug.check_determinism(step, restore=[step.model, step.optimizer])
    first = outcome.first
    assert (first.cause, first.operator, first.module, first.phase) == (
        "operator",
        f"aten::{operator}",
        module,
        phase,
    )
    assert first.names == ("result",) and "for the same arguments" in str(first)


def test_state_that_a_run_changes_is_distinguished_from_an_operator_that_varies():
    step = Training(GPT())
    first = debug.check_determinism(step).first
    assert (first.cause, first.operator, first.names) == ("state", "aten::embedding", ("weight",))
    assert "Fix: check_determinism(function, restore=[model, optimizer])" in str(first)


def test_calls_that_only_one_run_makes_are_reported():
    x = torch.ones(2, device="musa")
    for functions, only in (([torch.relu, torch.abs], "second"), ([torch.relu, lambda x: x], "first")):
        runs = iter(functions)
        first = debug.check_determinism(lambda runs=runs: next(runs)(x)).first
        assert (first.cause, first.names) == ("program", (only,))
        assert f"in the {only} run only" in str(first)


def test_backward_passes_on_engine_threads_are_compared():
    out = run_code(
        """
        from tests.torch_musa.debug.planted import planted, varying
        from tests.torch_musa.debug.programs import GPT, Training
        from torch_musa import debug

        step = Training(GPT())
        restore = [step.model, step.optimizer]
        print(debug.check_determinism(step, restore=restore).deterministic)
        with planted("gelu_backward", varying("gelu_backward")):
            print(debug.check_determinism(step, restore=restore).first.module)
        """,
        TORCH_MUSA_BACKWARD_THREADS="1",
    )
    assert out == "True\nGPT.layers.1.mlp.1\n"


def test_random_states_of_the_program_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(2), torch.rand(2, device="musa").cpu()
    torch.manual_seed(5)
    debug.check_determinism(lambda: torch.rand(9, device="musa"), seed=3)
    assert torch.equal(torch.rand(2), expected[0])
    assert torch.equal(torch.rand(2, device="musa").cpu(), expected[1])
