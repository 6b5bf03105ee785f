# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Options, markers and rules that hold for every suite."""

from __future__ import annotations

import gc
import os
import random
import sys
from pathlib import Path

import pytest

from tests.harness import absent, parts, skips, sweeps, tier

# Cross-device tests need a second device; this variable sets the emulator's number of devices. The emulator
# reads it once, when the first test loads the SDK.
os.environ.setdefault("MUSA_EMULATOR_DEVICES", "2")
# Tests have the default order of providers, also on a machine whose user has measured another one.
os.environ.setdefault("TORCH_MUSA_OPS_FILE", "none")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="complete sweeps in place of the sampled ones (conformance: every sample of every operator)",
    )
    parser.addoption(
        "--part",
        default="1/1",
        metavar="I/N",
        help="every N-th test of each file from the I-th on (of conformance: every N-th case): runs in other "
        "settings take the rest",
    )
    parser.addoption(
        "--tier",
        choices=["changed", "sample", "rest"],
        help="changed: all tests of what changed; sample: some of the others (tests/harness/tier.py); "
        "rest: a share of those that both leave out",
    )
    parser.addoption(
        "--ecosystem",
        action="store_true",
        help="collect tests/ecosystem, which needs the packages that `tools/dev.py ecosystem` installs",
    )


ECOSYSTEM = Path(__file__).with_name("ecosystem")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out the cases with real packages, whose imports fail if the packages are not installed, and
    files that the tier does not take."""
    if collection_path.is_relative_to(ECOSYSTEM) and not config.getoption("--ecosystem"):
        return True
    if config.getoption("--tier") and tier.ignores(config.stash[_TIER], collection_path):
        return True
    return None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if absent.reason_of_folder(module_path) is None:
        return None
    return absent.AbsentModule.from_parent(parent, path=module_path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    from tests.harness.scheduler import FileScheduler

    return FileScheduler(config, log)


_TIER = pytest.StashKey[tier.Tier]()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--tier"):
        config.stash[_TIER] = tier.chosen(config.getoption("--tier"))
    for marker in (
        "host_addressable(reason): needs device memory that the host can address; skipped where it cannot",
        "emulator: steers the SDK through the emulator's C API; skipped on any other SDK",
        "full: part of the complete sweep only (--full)",
        "needs(*packages): skipped if one of these packages of the workspace is not installed",
    ):
        config.addinivalue_line("markers", marker)
    if not config.getini("xfail_strict"):
        raise pytest.UsageError(
            "xfail_strict is off, so a known failure that has been fixed would go unnoticed. "
            "Run pytest from the repository root, where pyproject.toml turns it on."
        )

    named = (Path(argument.split("::")[0]).resolve() for argument in config.args)
    if not config.getoption("--ecosystem") and any(path.is_relative_to(ECOSYSTEM) for path in named):
        raise pytest.UsageError(
            "tests/ecosystem needs packages that .venv does not have. "
            "Fix: python3 tools/dev.py ecosystem -k NAME"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        os.environ[sweeps.COMPLETE] = "1"
    else:
        _deselect(config, items, {item for item in items if item.get_closest_marker("full")})
    _deselect(config, items, parts.left_out(items, *parts.chosen(config)))
    if config.getoption("--tier"):
        _deselect(config, items, tier.left_out(config.stash[_TIER], items))


def _deselect(config: pytest.Config, items: list[pytest.Item], unwanted: set[pytest.Item]) -> None:
    if unwanted:
        config.hook.pytest_deselected(items=[item for item in items if item in unwanted])
        items[:] = [item for item in items if item not in unwanted]


def pytest_runtest_setup(item: pytest.Item) -> None:
    needed = tuple(name for marker in item.iter_markers("needs") for name in marker.args)
    if why := absent.reason(needed):
        pytest.skip(why)
    # Tests compare the memory before and after. A cycle that an earlier test left, freed between the two by a
    # collection of this test, would change the difference.
    gc.collect()


def pytest_collection_finish() -> None:
    # torch, its operator databases and the tests themselves live to the end. Frozen, they are skipped by the
    # many collections of leak checks and fault sweeps, each of which then takes a millisecond instead of 70.
    gc.collect()
    gc.freeze()


def _refuse_unexplained_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    objection = skips.objection_to(reason)
    if objection:
        report.outcome = "failed"
        report.longrepr = objection


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> pytest.TestReport:
    report = yield
    _refuse_unexplained_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> pytest.CollectReport:
    report = yield
    _refuse_unexplained_skip(report)
    return report


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """True if --full selects complete sweeps."""
    return request.config.getoption("--full")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Each test starts from the same random state, whatever ran before it."""
    random.seed(0)
    # Suites that do not use torch must not pay for importing it.
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "manual_seed"):
        torch.manual_seed(0)
