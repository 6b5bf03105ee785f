# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Without the pack, errors for its names give the extra of torch-musa, and nothing else changes."""

import pytest

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

# As if the metadata had neither the pack nor its distribution.
ABSENT = """
import importlib.metadata as metadata
select, distribution = metadata.EntryPoints.select, metadata.distribution
def selected(self, **parameters):
    found = select(self, **parameters)
    return metadata.EntryPoints(each for each in found if getattr(each.dist, "name", "") != "musa-compat")
def known(name):
    if name == "musa-compat":
        raise metadata.PackageNotFoundError(name)
    return distribution(name)
metadata.EntryPoints.select, metadata.distribution = selected, known
"""
STATEMENTS = (
    "from torch_musa.utils.musa_extension import MUSAExtension",
    "from torch_musa.utils.simple_porting import SimplePorting",
    "from torch_musa import amp",
    "from torch_musa import is_available",
    "import torch_musa.core.device",
    "import torch_musa.optim",
    "from torch_musa.testing import get_musa_arch",
    "torch_musa.device_count()",
    "torch_musa.use_unified_cpu_allocator()",
)
TRY = f"""
import torch_musa
for statement in {STATEMENTS!r}:
    try:
        exec(statement)
    except (AttributeError, ImportError) as error:
        print(str(error).replace("\\n", " "))
"""


def test_each_name_has_an_error_that_names_the_extra():
    errors = run_code(ABSENT + TRY).splitlines()
    assert len(errors) == len(STATEMENTS)
    for error in errors:
        assert "needs musa-compat (the extra torch-musa[compat]), which is not installed." in error
        assert "Fix: " in error and "musa-compat" in error.split("Fix: ")[1]


def test_a_pack_that_is_switched_off_is_named():
    errors = run_code(TRY, TORCH_MUSA_DISABLE_PACKS="compat").splitlines()
    assert len(errors) == len(STATEMENTS)
    for error in errors:
        assert "belongs to the pack 'compat', which TORCH_MUSA_DISABLE_PACKS switches off." in error


def test_other_names_raise_python_s_own_errors():
    code = """
import torch, torch_musa
for statement in ("torch_musa.imaginary", "import torch_musa.imaginary", "from torch_musa import imaginary"):
    try:
        exec(statement)
    except (AttributeError, ImportError) as error:
        print(type(error).__name__, "Fix" in str(error))
print(hasattr(torch_musa, "is_available"), hasattr(torch.nn, "SwishGLU"), torch_musa.current_device())
"""
    assert run_code(ABSENT + code).splitlines() == [
        "AttributeError False",
        "ModuleNotFoundError False",
        "ImportError False",
        "False False 0",
    ]
