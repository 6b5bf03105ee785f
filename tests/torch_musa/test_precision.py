# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.backends.musa`."""

from __future__ import annotations

import pytest
import torch

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once


def test_it_is_there_with_the_device_and_asks_for_none():
    code = """
    import torch, torch.backends.musa
    print(torch.backends.musa.is_built(), torch.backends.musa.matmul.allow_tf32, torch.musa.is_initialized())
    """
    assert run_code(code, fresh=True) == "True False False\n"


def test_the_setting_is_torchs():
    code = """
    import torch
    torch.backends.musa.matmul.allow_tf32 = True
    print(torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32)
    torch.set_float32_matmul_precision("highest")
    print(torch.backends.musa.matmul.allow_tf32)
    """
    assert run_code(code) == "high True\nFalse\n"


def test_other_values_and_names_are_refused():
    with pytest.raises(
        TypeError, match=r"torch\.backends\.musa\.matmul\.allow_tf32 must be a bool, but got int"
    ):
        torch.backends.musa.matmul.allow_tf32 = 1
    with pytest.raises(AttributeError, match="allow_tf23"):
        torch.backends.musa.matmul.allow_tf23 = True
    assert torch.backends.musa.matmul.allow_tf32 is False


def test_a_module_of_that_name_stays():
    code = """
    import torch, types
    torch.backends.musa = mine = types.ModuleType("mine")
    import torch_musa
    print(torch.backends.musa is mine)
    """
    assert run_code(code, fresh=True, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "True\n"
