# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py gpu`: its copy of the workspace, its suites, its record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workspace import ROOT, WorkspaceError, gpu, packages

pytestmark = pytest.mark.once

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.a" name="test_good"/>
<testcase classname="tests.a" name="test_bad"><failure message="no">line
E       RuntimeError: no such device
</failure></testcase>
<testcase classname="tests.a" name="test_left_out"><skipped message="no">text</skipped></testcase>
</testsuite></testsuites>"""


def test_the_copy_builds_the_packs_with_musa_cuda() -> None:
    text = gpu.for_gpu((ROOT / "pyproject.toml").read_text())
    assert packages.parse_package_list(text) == list(gpu.PACKAGES)
    assert packages.parse_core_count(text) == len(gpu.PACKAGES)
    assert packages.parse_built_with(text) == gpu.BUILT_WITH
    names = gpu.PACKAGES
    for name in names:
        folder = ROOT / "packages" / name
        needed = packages.parse_dependencies((folder / "pyproject.toml").read_text()) + gpu.BUILT_WITH.get(
            name, []
        )
        built_before = names[: names.index(name)]
        workspace = packages.parse_package_list((ROOT / "pyproject.toml").read_text())
        assert all(other in built_before for other in needed if other in (*names, *workspace)), name


def test_packages_for_nvidia_gpus_are_no_part_of_a_release_as_the_pages_state() -> None:
    release = packages.package_names()
    outside = {file.parent.name for file in (ROOT / "packages").glob("*/pyproject.toml")} - set(release)
    assert outside == set(gpu.PACKAGES) - set(release) and "musa-cuda" in outside
    page = (ROOT / "docs" / "design" / "releases.md").read_text()
    section = page.partition("## Packages outside a release\n")[2].partition("\n## ")[0]
    reserved = (ROOT / "docs" / "releasing.md").read_text().partition("## Names to reserve\n")[2]
    reserved = reserved.partition("\n## ")[0]
    assert outside == {name for name in (*release, *outside) if f"`{name}`" in section}
    assert all(f"`{name}`" in reserved for name in (*release, *outside))


def test_a_workspace_of_another_form_is_refused() -> None:
    with pytest.raises(WorkspaceError, match="has not the packages"):
        gpu.for_gpu("[tool.musa]\npackages = ['a']\n")


def test_large_tools_of_the_machine_are_used_and_the_others_are_pinned() -> None:
    text = packages.REQUIREMENTS.read_text()
    bare = gpu.wanted(text, {})
    assert any(line.startswith("cmake==") for line in bare) and not any(
        line.startswith("torch==") for line in bare
    )
    there = gpu.wanted(text, {"cmake": "3.30", "pytest": "8.0"})
    assert not any(line.startswith("cmake==") for line in there)
    assert any(line.startswith("pytest==") for line in there)


def test_suites_are_divided_and_chosen_by_name() -> None:
    titles = [title for title, *_ in gpu.commands([])]
    assert "conformance_12" in titles and "amp" in titles and len(titles) == len(set(titles))
    assert [title for title, *_ in gpu.commands(["amp"])] == ["amp"]
    shown = [env.get("CUDA_VISIBLE_DEVICES") for *_, env in gpu.commands(["vision", "runtime"], gpus=2)]
    assert shown == [None] * 14 + ["0", "1"]  # the runtime's tests use both GPUs
    with pytest.raises(WorkspaceError, match="nosuch is no suite"):
        gpu.commands(["nosuch"])
    assert all((ROOT / arguments[0]).is_dir() for _, arguments, _, _ in gpu.SUITES)


class FakeCell(gpu.Cell):
    """A tree whose Python runs `script`, which may write a report."""

    def __init__(self, folder: Path, script: str) -> None:
        super().__init__()
        self._folder = folder
        program = folder / "tree" / ".venv" / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    @property
    def folder(self) -> Path:
        return self._folder


def test_reports_are_counted(tmp_path: Path) -> None:
    (tmp_path / "junit").write_text(JUNIT)
    copy = f"""
for word in "$@"; do
  case $word in --junitxml=*) cp {tmp_path}/junit "${{word#--junitxml=}}";; esac
done
exit 1"""
    results = gpu.run_suites(FakeCell(tmp_path, copy), ["amp"], jobs=1, limit=60)
    row = results["amp"]
    assert (row["passed"], row["failed"], row["skipped"], row["stopped"]) == (1, 1, 1, [])
    assert row["failures"] == [{"test": "tests.a::test_bad", "said": "E       RuntimeError: no such device"}]


def test_paths_of_a_machine_are_left_out() -> None:
    tmp, root = "/".join(["", "tmp", "w", "x.py"]), "/".join(["", "root", "a"])
    assert gpu.told(f"E   in {tmp}: no\nE   second\nE   third") == "E   in <path>: no E   second"
    assert gpu.told(f"one\nlast {root} 'kept/b'") == "last <path> 'kept/b'"


def test_a_process_without_a_report_is_recorded_as_stopped(tmp_path: Path) -> None:
    results = gpu.run_suites(FakeCell(tmp_path, "echo it broke; exit 9"), ["amp"], jobs=1, limit=60)
    assert results["amp"]["passed"] == 0 and "it broke" in results["amp"]["stopped"][0]


INTERRUPTED = """
report=$(printf '%s\n' "$@" | sed -n 's/^--junitxml=//p')
trap 'cat "$REPORT_OF_TESTS" > "$report"; exit 2' INT
while true; do sleep 0.1; done
"""


def test_a_process_that_the_limit_ends_is_recorded_and_its_tests_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "written.xml").write_text(JUNIT)
    monkeypatch.setenv("REPORT_OF_TESTS", str(tmp_path / "written.xml"))
    row = gpu.run_suites(FakeCell(tmp_path, INTERRUPTED), ["amp"], jobs=1, limit=1)["amp"]
    assert row["passed"] == 1 and row["stopped"] == ["amp: ended by the limit of 1 s"]


def test_a_failure_without_a_listed_cause_is_counted() -> None:
    failures = [
        {"test": "tests.a::test_bad", "said": "RuntimeError: no such device"},
        {"test": "tests.b::test_c", "said": ""},
    ]
    results = {"amp": {"failures": failures}}
    causes = [
        {"test": "^tests.a", "said": "no such device", "cause": "there is none"},
        {"said": "other", "cause": "x"},
    ]
    assert gpu.explain(results, causes) == 1
    assert [failure["cause"] for failure in failures] == ["there is none", "not looked into"]


def test_the_listed_causes_are_of_this_form() -> None:
    causes = json.loads(gpu.CAUSES.read_text())
    assert all(set(cause) <= {"test", "said", "cause"} and len(cause) > 1 for cause in causes)


def test_suites_that_were_not_chosen_keep_their_results_of_the_same_machine() -> None:
    machine = {"device": "a", "driver": "1", "torch": "2", "cuda": "3", "gpus": 1}
    before = {**machine, "suites": {"amp": 1, "runtime": 1}}
    record = {**machine, "suites": {"runtime": 2}}
    assert gpu.joined(before, record)["suites"] == {"amp": 1, "runtime": 2}
    assert gpu.joined({**before, "driver": "2"}, record)["suites"] == {"runtime": 2}
    assert gpu.joined({}, record) == record
    assert gpu.record_name({"device": "NVIDIA H100 80GB HBM3", "gpus": 4}) == "gpu_4x_h100"


def test_without_a_gpu_the_command_reports_it() -> None:
    assert "no GPU" in gpu.missing_gpu({"device": None})
    assert gpu.missing_gpu({"device": "NVIDIA H200"}) is None


def test_a_machine_without_the_driver_is_described(tmp_path: Path) -> None:
    """`dev.py gpu --build` needs neither a GPU nor nvidia-smi."""
    env = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", gpu.DEVICE], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert gpu.missing_gpu(json.loads(done.stdout.splitlines()[-1]))
