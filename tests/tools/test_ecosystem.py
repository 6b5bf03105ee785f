# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The cases of `dev.py ecosystem` fail if they run on the CPU or differ, and its lists are complete."""

from __future__ import annotations

import ast
import re
import types
from pathlib import Path

import pytest
import torch

from tests.ecosystem import comparison, observation
from tests.ecosystem.conftest import Both, judged
from tests.ecosystem.known_failures import KNOWN_FAILURES, Known
from tests.harness.subprocesses import run_python
from workspace import ROOT

pytestmark = pytest.mark.once

CASES = Path(observation.__file__).parent
KNOWN = Known("its list of devices", "no such device", "device='musa'", "test_a.py::test_b")


@pytest.fixture
def both():
    facts: dict = {}
    result = Both(facts)
    result.facts = facts
    return result


def layers(*devices: str) -> torch.nn.Sequential:
    """Layers on the devices, each behind one that moves its input there."""

    class Moved(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x.to(self.weight.device))

    torch.manual_seed(0)
    return torch.nn.Sequential(*(Moved(3, 3).to(device) for device in devices))


def test_a_program_on_musa_passes_and_its_device_is_recorded(both):
    found = both(lambda device: layers(device, device)(torch.ones(2, 3)).detach())
    assert found.device.type == "musa"
    assert both.facts["device"]["parameters"] == {"musa:0": 2} and both.facts["device"]["operators"] >= 2
    assert both.facts["difference"] <= 1e-5
    program = lambda device: layers(device, "cpu")(torch.ones(2, 3)).detach()  # noqa: E731
    both(program, cpu_parameters="the last layer is offloaded", cpu_results="as is its result")
    assert both.facts["on_cpu"] == "the last layer is offloaded"


@pytest.mark.parametrize(
    "program, text",
    [
        (lambda device: layers("cpu")(torch.ones(2, 3)).detach(), "no operator ran on musa"),
        (lambda device: layers("cpu")(torch.ones(2, 3)).detach().to(device), "no operator ran on musa"),
        (lambda device: layers("cpu")(torch.ones(2, 3)).to(device).detach() * 2, "no called module"),
        (lambda device: layers(device, "cpu", device)(torch.ones(2, 3)).detach(), "modules with parameters"),
        (lambda device: layers(device)(torch.ones(2, 3)).detach().cpu(), "results are not on musa"),
    ],
    ids=["silent", "silent and moved", "silent and used", "one layer", "result"],
)
def test_a_program_that_stays_on_the_cpu_fails(program, text, both):
    with pytest.raises(observation.RanOnCPU, match=text):
        both(program)


@pytest.mark.parametrize(
    "expected, found",
    [
        (torch.ones(2), torch.tensor([1.0, 1.1])),
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), torch.ones(2).half()),
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
        (torch.tensor([torch.nan]), torch.tensor([torch.nan])),
        (torch.tensor([1.0]), torch.tensor([torch.nan])),
        (torch.tensor([torch.inf]), torch.tensor([-torch.inf])),
        ({"a": 1.0}, {"b": 1.0}),
        ("text", "other"),
        ([], []),
        ([None], [None]),
    ],
)
def test_results_that_differ_or_compare_nothing_are_refused(expected, found):
    with pytest.raises(comparison.Differs):
        comparison.compare(expected, found, 1e-3)


def test_a_tensor_of_rounding_noise_is_compared_with_its_neighbours():
    noise = {"weight": torch.ones(2), "bias": torch.full((2,), 1e-9)}
    assert comparison.compare(noise, {**noise, "bias": -noise["bias"]}, 1e-5) < 1e-5
    with pytest.raises(comparison.Differs, match="bias"):
        comparison.compare(noise, {**noise, "bias": torch.full((2,), 1e-6)}, 1e-5)
    with pytest.raises(TypeError, match="cannot be compared"):
        comparison.compare([object()], [object()], 1e-5)


@pytest.mark.parametrize(
    "failed, text, outcome",
    [(True, "ValueError: no such device", "known"), (True, "KeyError: 'x'", "failed"), (False, "", "failed")],
)
def test_a_known_failure_that_passes_or_fails_otherwise_is_a_failure(failed, text, outcome):
    assert judged(KNOWN, failed, text)[0] == outcome


def test_without_the_option_nothing_is_collected():
    done = run_python("-m", "pytest", "-q", str(ROOT / "tests" / "ecosystem"))
    assert done.returncode == 4 and "Fix: python3 tools/dev.py ecosystem" in done.stderr + done.stdout
    from tests import conftest

    config = types.SimpleNamespace(getoption=lambda name: False, args=["tests"])
    assert conftest.pytest_ignore_collect(ROOT / "tests" / "ecosystem" / "test_timm.py", config) is True
    assert conftest.pytest_ignore_collect(ROOT / "tests" / "tools" / "test_dev.py", config) is None


# `name==version` of a package that .venv does not have: torch and the packs are those of .venv.
PINNED = re.compile(
    r"(?!(torch|triton|nvidia-.*|cuda-.*|torch[-_]musa|musa-.*)==)[\w.-]+==[\w.+!-]+", re.IGNORECASE
)


def test_requirements_are_pinned_and_no_part_of_torch() -> None:
    lines = [line.partition("#")[0].strip() for line in (CASES / "requirements.txt").read_text().splitlines()]
    assert [line for line in lines if line and not PINNED.fullmatch(line)] == []
    for bad in ("timm", "timm>=1", "torch==2.13.0", "nvidia-nccl-cu13==2", "triton==3", "musa-amp==1"):
        assert not PINNED.fullmatch(bad)


def has_case(case: str) -> bool:
    file, _, name = case.partition("::")
    nodes = ast.parse((CASES / file).read_text()).body
    return any(isinstance(node, ast.FunctionDef) and node.name == name.partition("[")[0] for node in nodes)


def test_each_known_failure_has_a_cause_and_a_case_with_the_line_on_the_page() -> None:
    page = (ROOT / "docs" / "packages.md").read_text()
    assert not has_case("test_timm.py::test_that_does_not_exist")
    for case, known in KNOWN_FAILURES.items():
        assert has_case(case) and has_case(known.cure) and known.cure not in KNOWN_FAILURES, case
        assert known.reason and known.match and f"`{known.one_liner}`" in page, case
