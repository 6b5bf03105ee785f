# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Minors of torch whose compiler lacks names that the pack uses. A process of its own deletes the names from
the installed torch; whole builds with other minors are tested by `dev.py matrix`.
"""

import pytest

from tests.harness.skips import needs_torch
from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

# Deletes names that 2.11 and 2.12 lack, after the import of the module and before the pack's action for it.
WITHOUT = """
import sys, warnings
from musa_runtime import import_actions
import torch

def before(name, action):  # the pack's own action for the module comes after it
    finders = [finder for finder in sys.meta_path if getattr(finder, "name", None) == name]
    theirs = finders[0].action
    def both():
        action()
        theirs()
    finders[0].action = both

def delete_dynamo():
    from torch._dynamo.variables import ctx_manager
    from torch._functorch._aot_autograd import utils
    del ctx_manager.register_device_context_manager, ctx_manager.GenericDeviceVariable
    del utils.register_graphsafe_rng_device_type

def delete_inductor():
    from torch._inductor.codegen import cpp_utils, wrapper
    from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
    from torch._inductor.runtime import benchmarking
    del wrapper.EnterCudaStreamContextLine, benchmarking.register_benchmarker
    del CppWrapperCpu.get_device_include_path_aot
    cpp_utils.__dict__.pop("DEVICE_TO_ATEN", None)

before("torch._dynamo", delete_dynamo)
before("torch._inductor.compile_fx", delete_inductor)
warnings.simplefilter("error", RuntimeWarning)
"""
COMPILE = """
x = torch.randn(8, 8, device="musa")
f = lambda x: (x * 2 + 1).relu()
assert torch.allclose(torch.compile(f)(x), f(x))
torch._dynamo.reset()
from torch._inductor import config
with config.patch(cpp_wrapper=True):
    try:
        torch.compile(f)(x)
    except Exception as error:
        print(str(error))
"""
# A difference that the pack does not handle.
UNKNOWN = """
import torch._dynamo.device_interface as interfaces
del interfaces.register_interface_for_device
"""
OPTIMIZER = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    parameter = torch.nn.Parameter(torch.ones(3, device="musa"))
    optimizer = torch.optim.AdamW([parameter])  # imports Dynamo
    parameter.sum().backward()
    optimizer.step()
print(parameter.tolist() != [1.0] * 3)
print("\\n".join(str(warning.message) for warning in caught))
"""


def test_an_older_torch_compiles_without_the_wrapper_in_cpp():
    needs_torch("2.13", "the names that are deleted")
    said = run_code(WITHOUT + COMPILE)
    assert "support musa with torch 2.13 and later" in said and "Fix: " in said


def test_a_difference_that_is_not_known_is_a_warning_and_optimizers_work():
    needs_torch("2.13", "the names that are deleted")
    changed = WITHOUT.replace(
        "def delete_dynamo():", f"def delete_dynamo():{UNKNOWN}".replace("\n", "\n    ")
    )
    stepped, *warned = run_code(changed + OPTIMIZER).splitlines()
    assert stepped == "True"
    assert "musa_compile could not register with torch" in warned[0]
    assert "register_interface_for_device" in warned[0] and warned[1].startswith("Fix: ")
