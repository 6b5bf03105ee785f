# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.debug.track_nonfinite` names the operator and the module that first produce a NaN or an
infinity."""

import math

import pytest
import torch

from tests.torch_musa.debug.planted import planted, with_nan
from tests.torch_musa.debug.programs import GPT, ResNet, Training
from torch_musa import debug

pytestmark = pytest.mark.usefixtures("musa")


def tracked(function, *arguments, **options):
    with debug.track_nonfinite(*arguments, **options) as tracker:
        function()
    return tracker


@pytest.mark.parametrize("model", [ResNet, GPT])
def test_a_right_program_has_no_finding(model):
    assert tracked(Training(model())).findings == []


@pytest.mark.parametrize(
    ("model", "operator", "module", "phase"),
    [
        (ResNet, "relu", "ResNet.layer1.act", "forward"),
        (ResNet, "native_batch_norm_backward", "ResNet.layer2.bn2", "backward"),
        (GPT, "native_layer_norm", "GPT.layers.0.ln1", "forward"),
        (GPT, "gelu_backward", "GPT.layers.1.mlp.1", "backward"),
    ],
    ids=lambda value: str(value),
)
def test_the_first_finding_is_the_planted_operator_in_its_module(model, operator, module, phase):
    step = Training(model())
    with planted(operator, with_nan(operator)):
        tracker = tracked(step)
    first = tracker.first
    assert (first.operator, first.module, first.phase) == (f"aten::{operator}", module, phase)
    assert (first.kind, first.origin, first.count, first.argument) == ("nan", "operator", 1, "")
    assert tracker.affected > 5, "operators that pass the NaN on were not seen"
    assert "no argument had nan" in str(first)


def test_a_nan_of_a_weight_is_reported_as_coming_with_the_input():
    step = Training(GPT())
    with torch.no_grad():
        step.model.layers[1].proj.bias[3] = math.nan
    first = tracked(step).first
    assert (first.operator, first.module) == ("aten::addmm", "GPT.layers.1.proj")
    assert (first.origin, first.argument) == ("input", "self")


def test_it_stops_at_the_first_finding_if_requested():
    step = Training(GPT())
    with (
        planted("gelu_backward", with_nan("gelu_backward")),
        pytest.raises(debug.NonFiniteError, match=r"gelu_backward in GPT\.layers\.1\.mlp\.1") as caught,
    ):
        tracked(step, stop=True)
    assert caught.value.finding.phase == "backward"


def test_an_infinity_that_the_program_writes_is_no_finding_but_a_nan_that_it_computes_from_it_is():
    def program():
        scores = torch.zeros(4, 4, device="musa")
        mask = torch.ones(4, 4, device="musa", dtype=torch.bool)
        scores = scores.masked_fill(mask, -torch.inf)
        scores.softmax(-1)  # a row without a finite element

    tracker = tracked(program)
    [finding] = tracker.findings
    assert (finding.operator, finding.kind, finding.argument) == ("aten::_softmax", "nan", "self")
    assert "self has inf, but no argument has nan" in str(finding)


def test_kinds_are_chosen():
    def program():
        torch.ones(2, device="musa") / torch.zeros(2, device="musa")
        torch.zeros(2, device="musa").log_()

    assert [finding.kind for finding in tracked(program).findings] == ["inf", "inf"]
    assert tracked(program, ("nan",)).findings == []
    with pytest.raises(ValueError, match=r"Fix: kinds=\('nan',\)"):
        debug.track_nonfinite(("infinity",))


def test_in_place_operators_and_uninitialised_memory():
    memory = torch.full((3,), math.nan, device="musa")

    def program():
        torch.empty_like(memory)
        memory.zero_()  # overwrites the NaN without reading it
        memory.add_(1)
        memory.sub_(2).sqrt_()

    [finding] = tracked(program).findings
    assert (finding.operator, finding.origin) == ("aten::sqrt_", "operator")
    memory.fill_(math.nan)
    assert tracked(lambda: memory.add_(1)).first.origin == "input"
