# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each out= overload of ATen, called once on memory that the host cannot address, gives the CPU's result
or an error: none ends the process."""

import pytest
import torch

from tests.harness.subprocesses import run_module
from tests.musa_runtime import out_overloads

pytestmark = pytest.mark.once

STEP = 37  # of the sampled run
ALWAYS = ("aten::range.out_",)
FEWEST = 1000  # overloads of torch


@pytest.fixture(autouse=True)
def _emulator(emulator):
    """Strict memory is a mode of the emulator."""


def _results(first: int, step: int) -> list[str]:
    done = run_module(
        "tests.musa_runtime.out_overloads",
        str(first),
        str(step),
        timeout=3000,
        MUSA_EMULATOR_MEMORY="strict",
        TORCH_MUSA_FALLBACK="allow",
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]} ended the process:\n{done.stderr[-2000:]}"
    return lines


def test_the_results_are_those_of_the_cpu(full):
    lines = _results(0, 1 if full else STEP)
    assert [line for line in lines if "WRONG" in line] == []
    assert sum(line.endswith("equal") for line in lines) > len(lines) / 2


@pytest.mark.parametrize("name", ALWAYS)
def test_overloads_that_ended_the_process(name):
    names = [out_overloads.full_name(schema) for schema in out_overloads.overloads()]
    assert len(names) > FEWEST
    [line] = _results(names.index(name), len(names))
    assert line.endswith("equal")


def test_a_wrong_result_is_found(musa, monkeypatch):
    [schema] = [s for s in out_overloads.overloads() if out_overloads.full_name(s) == "aten::sin.out"]
    assert out_overloads.checked(schema) == "equal"
    right = out_overloads.call
    monkeypatch.setattr(
        out_overloads,
        "call",
        lambda *args: [out + (out.device.type != "cpu") for out in right(*args)],
    )
    assert out_overloads.checked(schema).startswith("WRONG")


def test_an_access_of_device_memory_ends_the_process():
    done = run_module("tests.musa_runtime.test_out_overloads", MUSA_EMULATOR_MEMORY="strict")
    assert done.returncode != 0
    assert "ended" not in done.stdout


def access_on_the_host() -> None:
    """torch's kernel for the CPU, called on a tensor of the device."""
    x = torch.empty(4, device="musa")
    torch.ops.aten.range.out_.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), 0, 3, out=x)
    print("ended")


if __name__ == "__main__":
    access_on_the_host()
