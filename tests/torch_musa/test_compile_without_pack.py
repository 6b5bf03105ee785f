# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.compile` without a pack that generates code: Inductor's error names the wheel; other backends
work."""

import pytest

from tests.harness.subprocesses import run_code, run_forked

pytestmark = [pytest.mark.once, pytest.mark.slow]

INDUCTOR = """
import torch
x = torch.ones(4, 4, device="musa")
for program in (lambda x: x.sum(0) + 1, torch.rand_like, lambda x: x @ x):
    torch._dynamo.reset()
    try:
        torch.compile(program)(x)
    except Exception as error:
        print(str(error).replace("\\n", " "))
"""


def refusals(changes: str = "", **environment: str) -> list[str]:
    """The errors of three graphs: a reduction, random numbers and a product."""
    found = run_code(changes + INDUCTOR, **environment).splitlines()
    assert len(found) == 3
    return found


def test_a_pack_that_is_switched_off_is_named() -> None:
    for error in refusals(TORCH_MUSA_DISABLE_PACKS="compile"):
        assert "TORCH_MUSA_DISABLE_PACKS switches the pack 'compile' off" in error
        assert 'torch.compile(..., backend="aot_eager")' in error


def test_a_wheel_that_is_missing_is_named_with_the_command() -> None:
    # As if the metadata had neither the pack nor its distribution.
    without = """
import importlib.metadata as metadata
select, distribution = metadata.EntryPoints.select, metadata.distribution
def selected(self, **parameters):
    found = select(self, **parameters)
    return metadata.EntryPoints(each for each in found if getattr(each.dist, "name", "") != "musa-compile")
def known(name):
    if name == "musa-compile":
        raise metadata.PackageNotFoundError(name)
    return distribution(name)
metadata.EntryPoints.select, metadata.distribution = selected, known
"""
    for error in refusals(without):
        assert "musa-compile (the extra torch-musa[compile]) is not installed" in error
        assert "Fix: " in error and "musa-compile" in error.split("Fix: ")[1]


def test_a_pack_whose_import_hook_fails_is_named() -> None:
    broken = """
import sys
sys.modules["musa_compile.registration"] = None
"""
    for error in refusals(broken):
        assert "the pack 'compile' failed" in error and "Fix: python -m torch_musa doctor" in error


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_other_backends_need_no_pack(backend: str) -> None:
    code = f"""
import torch
x = torch.randn(4, 4, device="musa")
program = torch.compile(lambda x: (x @ x).relu() + torch.ones_like(x), backend={backend!r}, fullgraph=True)
print(torch.equal(program(x), (x @ x).relu() + 1))
"""
    assert run_code(code, TORCH_MUSA_DISABLE_PACKS="compile").strip() == "True"


def test_a_graph_of_host_tensors_is_not_refused() -> None:
    code = """
import torch
x = torch.ones(3)
print(torch.compile(lambda x: x * 2)(x).tolist())
"""
    done = run_forked(code, TORCH_MUSA_DISABLE_PACKS="compile")
    assert done.stdout.strip() == "[2.0, 2.0, 2.0]", done.stderr
