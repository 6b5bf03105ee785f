# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The fixtures of cases with real packages, and the rule of known failures."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.ecosystem.known_failures import KNOWN_FAILURES, Known

# Reports of programs on the CPU: several cases are compared with the same one.
_ON_CPU: dict[tuple[str, ...], list[dict[str, Any]]] = {}
_FACTS = pytest.StashKey[dict[str, Any]]()


def case_of(nodeid: str) -> str:
    """The name of a case in known_failures.py: ``test_timm.py::test_models[resnet18]``."""
    return nodeid.removeprefix("tests/ecosystem/")


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.getoption("--ecosystem"):
        from tests.ecosystem import vision_schemas

        vision_schemas.declare()


class Both:
    """Runs a program on the CPU and on musa, and compares the results."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    def __call__(
        self,
        program: Callable[[str], Any],
        *,
        within: float = 1e-5,
        watch_modules: bool = True,
        cpu_parameters: str = "",
        cpu_results: str = "",
    ) -> Any:
        """Calls `program("cpu")` and `program("musa")`; returns the second result.

        Args:
            program (callable): gets a device type and returns a tree of tensors and values.
            within (float): the largest difference relative to the largest value of the same tensor.
            watch_modules (bool): whether a hook records the devices of modules' parameters; with
                torch.compile, the hook would change the compiled program.
            cpu_parameters (str): the reason why modules may run on the CPU too; empty if they must not.
            cpu_results (str): the reason why tensors of the result may be on the CPU; empty if they must not.
        """
        from tests.ecosystem import comparison, observation

        seeded()
        expected = program("cpu")
        seeded()
        with observation.Observation(watch_modules) as seen:
            found = program("musa")
        self.judge(expected, found, seen.summary(), within, cpu_parameters, cpu_results)
        observation.check_on_musa(seen.summary(), comparison.devices(found), cpu_parameters, cpu_results)
        return found

    def judge(self, expected, found, summary, within, cpu_parameters="", cpu_results="") -> None:
        """Compares two results; the report gets the difference and the devices."""
        from tests.ecosystem import comparison

        self._facts["device"] = summary
        if cpu_parameters or cpu_results:
            self._facts["on_cpu"] = cpu_parameters or cpu_results
        self._facts["difference"] = comparison.compare(expected, found, within)

    def launched(
        self,
        program: str,
        *arguments: str,
        launcher: Callable[[str], list[str]],
        folder: Path,
        within: float = 1e-5,
        cpu_parameters: str = "",
        cpu_arguments: Sequence[str] | None = None,
    ) -> None:
        """Runs a file of `programs/` in two processes on each device, and compares what rank 0 reports.

        Args:
            launcher (callable): gets a device type and returns the arguments of Python before the program.
            folder (Path): for the reports.
            cpu_arguments (list of str): arguments on the CPU if they differ from those on musa.
        """
        from tests.ecosystem import observation, programs

        reports = {}
        for device in ("cpu", "musa"):
            given = arguments if device == "musa" or cpu_arguments is None else cpu_arguments
            key = (program, *given)
            if device == "cpu" and key in _ON_CPU:
                reports[device] = _ON_CPU[key]
                continue
            reports[device] = programs.run(program, given, device, launcher(device), folder / device)
            if device == "cpu":
                _ON_CPU[key] = reports[device]
        for rank, report in enumerate(reports["musa"]):
            summary = report["summary"]
            self.judge(reports["cpu"][rank]["result"], report["result"], summary, within, cpu_parameters)
            observation.check_on_musa(summary, Counter(), cpu_parameters)


def seeded() -> None:
    """Seeds all generators that programs use."""
    import random

    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture
def both(request: pytest.FixtureRequest) -> Both:
    """Compares a program on musa with the same one on the CPU."""
    return Both(request.node.stash.setdefault(_FACTS, {}))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs each case in a folder of its own, because packages write into the current folder."""
    monkeypatch.chdir(tmp_path)
    yield


@pytest.fixture(scope="session", autouse=True)
def _quiet_packages() -> Iterator[None]:
    """No package connects to a hub, and dataset caches are not in the home folder."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
        assert os.environ.get(name) == "1", f"{name} is not set. Fix: python3 tools/dev.py ecosystem"
    with contextlib.suppress(ImportError):
        import transformers

        transformers.utils.logging.disable_progress_bar()
    yield


def judged(known: Known, failed: bool, text: str) -> tuple[str, str]:
    """Outcome and explanation of a case of the closed list.

    Args:
        failed (bool): whether it failed.
        text (str): the text of the failure.
    """
    if not failed:
        return "failed", f"known to fail ({known.reason}), but passed. Fix: remove it from known_failures.py"
    if known.match not in text:
        return "failed", f"failed in another way than known_failures.py states ({known.match!r}):\n{text}"
    return "known", known.reason


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> pytest.TestReport:
    report = yield
    known = KNOWN_FAILURES.get(case_of(item.nodeid))
    if known is not None and report.when == "call":
        text = str(call.excinfo.value) if call.excinfo else ""
        outcome, reason = judged(
            known, call.excinfo is not None, f"{call.excinfo.typename}: {text}" if text else ""
        )
        if outcome == "known":
            report.outcome, report.wasxfail = "skipped", reason
        else:
            report.outcome, report.longrepr = "failed", reason
    if report.when == "call":
        report.user_properties += [(name, str(fact)) for name, fact in item.stash.get(_FACTS, {}).items()]
    return report
