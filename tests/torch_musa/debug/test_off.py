# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.debug` costs nothing when it is off: it is not imported, and a block leaves no hook behind."""

import json

import pytest
import torch
from torch.nn.modules import module as torch_module

from tests.harness.subprocesses import run_code, run_module
from tests.torch_musa.debug.programs import ResNet, Training
from torch_musa import debug

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa")]

PROGRAM = """
import sys, torch
model = torch.nn.Linear(4, 4).to("musa")
model(torch.randn(2, 4, device="musa")).sum().backward()
print([name for name in sys.modules if name.startswith("torch_musa.debug")])
"""


def test_a_program_that_does_not_use_it_does_not_import_it():
    assert run_code(PROGRAM) == "[]\n"
    # A program that does use it, for comparison.
    assert "torch_musa.debug.mode" in run_code("import torch, torch_musa\ntorch_musa.debug\n" + PROGRAM)


def test_the_command_line_imports_it_for_its_commands_only():
    code = """
    import sys
    from torch_musa.__main__ import main

    main(["packs"])
    print("torch_musa.debug" in sys.modules)
    """
    assert run_code(code).splitlines()[-1] == "False"
    assert "PROGRAM" in run_module("torch_musa", "compare", "--help").stdout


def hooks():
    return len(torch_module._global_forward_hooks) + len(torch_module._global_forward_pre_hooks)


def test_a_block_leaves_no_mode_and_no_hook_behind():
    before, step = hooks(), Training(ResNet())
    with debug.compare(None):
        assert hooks() == before + 2
    assert hooks() == before
    with pytest.raises(ZeroDivisionError), debug.track_nonfinite():
        1 // 0  # noqa: B018 - an exception in the block
    assert hooks() == before
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    with debug.log_operators() as log:
        pass
    step()
    assert log.rows == []


def test_every_public_name_is_documented():
    for name in debug.__all__:
        assert getattr(debug, name).__doc__, name
    assert json.dumps(sorted(debug.__all__)) == json.dumps(debug.__all__)
