# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The vendor's comparison with the CPU finds planted operators, with each argument of its manual."""

import pytest
import torch

from musa_compat import compare_tool
from tests.torch_musa.debug.planted import planted, with_nan, wrong
from tests.torch_musa.debug.programs import GPT, Training

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore::FutureWarning")]


@pytest.fixture
def train(musa):
    """A function that makes a number of training steps of a small GPT."""
    training = Training(GPT())

    def run(steps: int = 1, after_step=lambda: None) -> None:
        for _ in range(steps):
            training()
            after_step()

    return run


def test_a_wrong_operator_is_reported_with_its_module(train, capsys):
    with planted("gelu", wrong("gelu")), compare_tool.CompareWithCPU(atol=1e-3, rtol=1e-3) as tool:
        train()
    assert {difference.operator for difference in tool.differences} == {"aten::gelu"}
    output = capsys.readouterr().out
    assert output.count("[ERROR] aten::gelu in GPT") == len(tool.differences)


def test_a_right_program_has_no_difference(train, capsys):
    with compare_tool.CompareWithCPU(atol=1e-3, rtol=1e-3) as tool:
        train()
    assert tool.compared > 20 and tool.differences == [] and capsys.readouterr().out == ""


def test_tolerances_are_those_of_the_call(train):
    with planted("gelu", wrong("gelu", 1.01)), compare_tool.CompareWithCPU(atol=0.1, rtol=0.1) as tool:
        train()
    assert tool.differences == []


@pytest.mark.parametrize("name", ["torch.ops.aten.gelu", "torch.ops.aten.gelu.default", "aten::gelu"])
def test_operators_are_chosen_and_accepted(train, name):
    with planted("gelu", wrong("gelu")):
        with compare_tool.CompareWithCPU(target_op=[name], verbose=True) as only:
            train()
        with compare_tool.CompareWithCPU(white_list=[name]) as without:
            train()
        with compare_tool.CompareWithCPU(target_op=["torch.ops.aten.mm"]) as other:
            train()
    assert only.differences and only.compared == len(only.differences)
    assert without.differences == [] and without.compared > 20
    assert other.differences == []


def test_verbose_prints_each_operator(train, capsys):
    with compare_tool.CompareWithCPU(target_op=["torch.ops.aten.gelu"], verbose=True) as tool:
        train()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == tool.compared > 0
    assert all(line.startswith("aten::gelu in GPT") for line in lines)


def test_steps_before_the_first_and_from_the_last_on_are_not_compared(train):
    per_step = []
    with planted("gelu", wrong("gelu")), compare_tool.CompareWithCPU(start_step=1, end_step=3) as tool:

        def count() -> None:
            per_step.append(len(tool.differences))
            tool.step()

        train(4, count)
    assert per_step[0] == 0 < per_step[1] < per_step[2] == per_step[3]


@pytest.mark.parametrize("arguments", [{"enabled": False}, {"enable_ranks": [1]}])
def test_a_tool_that_is_off_changes_nothing(train, arguments):
    with planted("gelu", wrong("gelu")), compare_tool.CompareWithCPU(**arguments) as tool:
        train()
    assert tool.compared == 0 and tool.differences == []


def test_a_saved_call_is_repeated(train, tmp_path):
    folder = tmp_path / "saved"
    with (
        planted("gelu", wrong("gelu")),
        compare_tool.CompareWithCPU(dump_error_data=True, output_dir=folder, should_log_to_file=True) as tool,
    ):
        train()
        file = folder / "torch.ops.aten.gelu_inputs.pkl"
        correct, args, kwargs, result = compare_tool.compare_for_single_op(file, torch.ops.aten.gelu)
    assert tool.differences and not correct
    assert args[0].device.type == "musa" and result.shape == args[0].shape and isinstance(kwargs, dict)
    log = (folder / "CompareWithCPU_rank0.log").read_text()
    assert log.count("[ERROR] aten::gelu") == len(tool.differences)
    # Without the planted kernel the same call is right.
    assert compare_tool.compare_for_single_op(file, torch.ops.aten.gelu, atol=1e-3, rtol=1e-3)[0]


def test_the_first_nan_is_reported(train, capsys):
    with compare_tool.NanInfTracker() as right:
        train()
    assert right.findings == []
    with planted("gelu", with_nan("gelu")), compare_tool.NanInfTracker() as tool:
        train()
    assert tool.findings[0].operator == "aten::gelu"
    assert "[WARNING] aten::gelu in GPT" in capsys.readouterr().out


def test_a_saved_call_is_searched_for_nan(train, tmp_path):
    with (
        planted("gelu", with_nan("gelu")),
        compare_tool.CompareWithCPU(dump_error_data=True, output_dir=tmp_path),
    ):
        train()
        file = tmp_path / "torch.ops.aten.gelu_inputs.pkl"
        assert not compare_tool.nan_inf_track_for_single_op(file, torch.ops.aten.gelu)[0]
    assert compare_tool.nan_inf_track_for_single_op(file, torch.ops.aten.gelu)[0]


def test_the_module_of_a_program_imports_what_the_manual_imports(musa):
    from torch_musa.utils.compare_tool import ModuleInfo, open_module_tracker

    assert open_module_tracker(torch.nn.Linear(1, 1)) is None
    with pytest.raises(NotImplementedError, match=r"Fix: .*Difference\.module"):
        ModuleInfo()
