# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py ecosystem`: cases that run on the CPU, differ or crash fail; the lists match the record."""

from __future__ import annotations

import ast
import json
import sys
import types

import pytest
import torch

from tests.ecosystem import comparison, observation
from tests.ecosystem.conftest import Both, judged
from tests.ecosystem.known_failures import KNOWN_FAILURES, Known
from tests.harness.subprocesses import run_python
from workspace import ROOT, WorkspaceError, ecosystem

pytestmark = pytest.mark.once

KNOWN = Known("its list of devices", "no such device", "device='musa'", "test_a.py::test_b")
SAMPLE = """
import os, torch

def test_good(both):
    both(lambda device: torch.ones(2, 2, device=device) @ torch.ones(2, 2, device=device))

def test_silent(both):
    both(lambda device: torch.nn.Linear(2, 2)(torch.ones(1, 2)).detach())

def test_crash():
    os._exit(3)
"""


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


def test_a_case_may_give_the_reason_why_a_part_is_on_the_cpu(both):
    program = lambda device: layers(device, "cpu")(torch.ones(2, 3)).detach()  # noqa: E731
    both(program, cpu_parameters="the last layer is offloaded", cpu_results="as is its result")
    assert both.facts["on_cpu"] == "the last layer is offloaded"


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


def test_an_unknown_object_in_a_result_is_an_error():
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


def test_outcomes_and_a_crash_are_read_from_the_file_of_results(tmp_path):
    sample, results = tmp_path / "test_sample.py", tmp_path / "results.jsonl"
    sample.write_text(SAMPLE)
    settings = {**dict.fromkeys(ecosystem.OFFLINE, "1"), "MUSA_ECOSYSTEM_RESULTS": str(results)}
    arguments = [
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "tests.ecosystem.conftest",
        "-q",
        "--ecosystem",
    ]
    arguments += ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={tmp_path}", str(sample)]
    done = run_python(*arguments, PYTHONPATH=f"{ROOT}:{':'.join(sys.path[1:])}", **settings)
    assert done.returncode == 3, done.stdout + done.stderr
    found = ecosystem.Run()
    found.read(results.read_text().splitlines())
    outcomes = {case.rpartition("::")[2]: entry["outcome"] for case, entry in found.ended.items()}
    assert outcomes == {"test_good": "passed", "test_silent": "failed"}
    assert found.running.endswith("::test_crash")
    found.crashed(found.running, "status 3")
    text = ecosystem.table(found.ended)
    assert "ran on the CPU" in text and "ended: status 3" in text
    assert ecosystem.record(found.ended, {})["counts"] == {"failed": 2, "passed": 1}


def test_a_record_keeps_the_cases_of_other_runs_with_the_same_versions():
    first = ecosystem.record({"a": {"outcome": "passed"}, "b": {"outcome": "failed"}}, {"timm": "1"})
    both = ecosystem.record({"b": {"outcome": "passed"}}, {"timm": "1"}, first)
    assert both["counts"] == {"passed": 2} and json.loads(ecosystem.text_of(both)) == both
    more = ecosystem.record({"c": {"outcome": "passed"}}, {"timm": "1", "ray": "1"}, first)
    assert more["packages"] == {"timm": "1", "ray": "1"} and set(more["cases"]) == {"a", "b", "c"}
    for versions in ({"timm": "2"}, {"ray": "1"}):
        with pytest.raises(WorkspaceError, match="other versions"):
            ecosystem.record({"b": {"outcome": "passed"}}, versions, first)


def test_a_case_that_fails_in_its_teardown_counts_as_failed():
    found = ecosystem.Run()
    lines = [{"started": "a"}, {"case": "a", "outcome": "passed"}, {"case": "a", "outcome": "failed"}]
    found.read(map(json.dumps, lines))
    assert found.counts() == {"failed": 1} and found.running == ""


@pytest.mark.parametrize(
    "line", ["timm", "timm>=1", "torch==2.13.0", "nvidia-nccl-cu13==2", "triton==3", "musa-amp==1"]
)
def test_a_requirement_without_a_version_or_from_venv_is_refused(line):
    assert ecosystem.pinned("# text\ntorchvision==0.28.0  # text\n") == {"torchvision": "0.28.0"}
    with pytest.raises(WorkspaceError):
        ecosystem.pinned(line)


def test_each_file_of_cases_is_run_by_one_process():
    files = [name for names in ecosystem.groups().values() for name in names]
    assert sorted(files) == sorted(path.name for path in ecosystem.CASES.glob("test_*.py"))


def functions(case: str) -> bool:
    """Whether the file of a case has its function."""
    file, _, name = case.partition("::")
    tree = ast.parse((ecosystem.CASES / file).read_text())
    return any(
        isinstance(node, ast.FunctionDef) and node.name == name.partition("[")[0] for node in tree.body
    )


def test_each_known_failure_has_a_cause_and_a_case_that_shows_the_cure():
    for case, known in KNOWN_FAILURES.items():
        assert functions(case) and functions(known.cure), case
        assert known.cure not in KNOWN_FAILURES, case
        assert known.reason and known.match and known.one_liner, case


def test_the_page_for_users_has_the_line_of_each_known_failure():
    page = (ROOT / "docs" / "packages.md").read_text()
    assert [known.one_liner for known in KNOWN_FAILURES.values() if f"`{known.one_liner}`" not in page] == []


def test_the_record_is_of_the_listed_packages_and_has_no_failure():
    record = json.loads(ecosystem.RECORD.read_text())
    assert record["packages"] == ecosystem.pinned(ecosystem.REQUIREMENTS.read_text())
    assert set(record["counts"]) <= {"passed", "known"} and record["counts"]["passed"] > 205
    known = {case for case, entry in record["cases"].items() if entry["outcome"] == "known"}
    assert known == set(KNOWN_FAILURES)
    silent = [
        case for case, entry in record["cases"].items() if entry["outcome"] == "passed" and not on_musa(entry)
    ]
    assert silent == []


def test_the_record_has_each_case_of_each_file():
    recorded = {case.partition("[")[0] for case in json.loads(ecosystem.RECORD.read_text())["cases"]}
    written = set()
    for path in ecosystem.CASES.glob("test_*.py"):
        nodes = ast.parse(path.read_text()).body
        written |= {
            f"{path.name}::{node.name}" for node in nodes if getattr(node, "name", "").startswith("test_")
        }
    assert recorded == written


def on_musa(entry: dict) -> bool:
    """Whether operators of a case ran on musa; cases that compare nothing have no entry for the device."""
    return "device" not in entry or entry["device"]["operators"] > 0
