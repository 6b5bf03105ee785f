# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The search for the MUSA SDK, and the error if there is none."""

import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

from musa_runtime import sdk

pytestmark = pytest.mark.once


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without any SDK, to which the test adds folders."""

    class Machine:
        default = tmp_path / "usr-local-musa"
        package = tmp_path / "site" / "musa_emulator"

        @staticmethod
        def install(home, version=None):
            (home / "lib").mkdir(parents=True)
            (home / "lib" / "libmusart.so").touch()
            if version:
                (home / "version.json").write_text(json.dumps({"musa_runtime": {"version": version}}))
            return str(home)

        def install_package(self, *directories):
            spec = importlib.machinery.ModuleSpec("musa_emulator", None, is_package=True)
            spec.submodule_search_locations = [str(d) for d in directories or (self.package,)]
            monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sdk, "DEFAULT_HOME", str(Machine.default))
    return Machine()


def test_musa_home_wins_over_every_other_folder(machine, tmp_path):
    chosen = machine.install(tmp_path / "chosen")
    machine.install(machine.default)
    machine.install(machine.package / "sdk")
    machine.install_package()
    found = sdk.resolve({"MUSA_HOME": chosen})
    assert (found.home, found.source, found.reason) == (chosen, "MUSA_HOME", None)


def test_the_default_folder_wins_over_the_emulator(machine):
    home = machine.install(machine.default)
    machine.install(machine.package / "sdk")
    machine.install_package()
    assert sdk.resolve({}).home == home


def test_the_emulator_is_found_last(machine):
    home = machine.install(machine.package / "sdk")
    machine.install_package()
    found = sdk.resolve({})
    assert (found.home, found.source) == (home, "musa_emulator")


def test_an_empty_musa_home_counts_as_unset(machine):
    machine.install(machine.package / "sdk")
    machine.install_package()
    assert sdk.resolve({"MUSA_HOME": ""}).source == "musa_emulator"


def test_an_editable_emulator_is_found_in_its_build_directory(machine, tmp_path):
    home = machine.install(tmp_path / "build" / "musa_emulator" / "sdk")
    machine.install_package(tmp_path / "sources" / "musa_emulator", tmp_path / "build" / "musa_emulator")
    assert sdk.resolve({}).home == home


def test_a_wrong_musa_home_is_an_error_and_never_replaced_by_another_sdk(machine, tmp_path):
    machine.install(machine.default)
    machine.install(machine.package / "sdk")
    machine.install_package()
    found = sdk.resolve({"MUSA_HOME": str(tmp_path / "nowhere")})
    assert found.home is None
    assert str(tmp_path / "nowhere") in found.reason
    assert "no such directory" in found.reason
    assert "unset MUSA_HOME" in found.reason


def test_a_directory_without_the_runtime_library_is_no_sdk(machine, tmp_path):
    (tmp_path / "empty").mkdir()
    found = sdk.resolve({"MUSA_HOME": str(tmp_path / "empty")})
    assert found.home is None
    assert "libmusart.so" in found.reason


def test_files_that_pip_leaves_of_the_emulator_are_no_installation(machine):
    (machine.package / "sdk" / "lib" / "mcc" / "__pycache__").mkdir(parents=True)
    machine.install_package()
    found = sdk.resolve({})
    assert found.attempts[-1] == ("package musa_emulator", f"not installed ({machine.package} holds no SDK)")


def test_an_emulator_without_its_library_is_named(machine):
    machine.install(machine.package / "sdk", "4.3.1")
    (machine.package / "sdk" / "lib" / "libmusart.so").unlink()
    machine.install_package()
    assert sdk.resolve({}).attempts[-1] == (str(machine.package / "sdk"), "has no lib/libmusart.so")


def test_unsetting_a_wrong_musa_home_is_advised_only_if_it_helps(machine, tmp_path):
    nowhere = {"MUSA_HOME": str(tmp_path / "nowhere")}
    assert sdk.resolve(nowhere).command.startswith("unset MUSA_HOME && ")
    machine.install(machine.default)
    assert sdk.resolve(nowhere).command == "unset MUSA_HOME"


def test_an_incomplete_default_folder_is_skipped_and_reported(machine):
    machine.default.mkdir()
    home = machine.install(machine.package / "sdk")
    machine.install_package()
    found = sdk.resolve({})
    assert found.home == home
    assert (str(machine.default), "has no lib/libmusart.so") in found.attempts


def test_without_an_sdk_every_attempt_and_a_fix_are_named(machine):
    reason = sdk.resolve({}).reason
    assert "$MUSA_HOME: not set" in reason
    assert str(machine.default) in reason
    assert "musa_emulator: not installed" in reason
    assert re.search("^Fix: .* -m pip install .*musa-emulator-mccl$", reason, re.MULTILINE)
    assert "unset MUSA_HOME" not in reason


@pytest.mark.parametrize(
    ("text", "version"),
    [('{"musa_runtime": {"version": "4.3.5"}}', "4.3.5"), ("not json", None), ("[]", None), (None, None)],
)
def test_version_is_read_or_unknown_but_never_raises(machine, tmp_path, text, version):
    home = machine.install(tmp_path / "chosen")
    if text is not None:
        (tmp_path / "chosen" / "version.json").write_text(text)
    assert sdk.resolve({"MUSA_HOME": home}).version == version


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"musa_runtime": {"version": "4.3.5"}}', "musa4"),
        ('{"musa_runtime": {"version": "5.1.0"}, "torch_musa": {"sdk": "emulator"}}', "emulator"),
        ('{"musa_runtime": {"version": "4.3.5"}, "torch_musa": {"sdk": "not a label"}}', "musa4"),
        ('{"musa_runtime": {"version": "4.3.5"}, "torch_musa": {"sdk": 7}}', "musa4"),
        ('{"musa_runtime": {"version": "unknown"}}', "musa"),
        ("not json", "musa"),
        (None, "musa"),
    ],
)
def test_an_sdk_declares_its_kind_or_is_the_vendors(machine, tmp_path, text, kind):
    home = machine.install(tmp_path / "emulator")  # the path decides nothing
    if text is not None:
        (tmp_path / "emulator" / "version.json").write_text(text)
    assert sdk.resolve({"MUSA_HOME": home}).kind == kind
    assert run_script("--kind", MUSA_HOME=home).stdout == f"{kind}\n"
    assert sdk.resolve({}).kind is None


@pytest.mark.parametrize(
    ("built", "here", "runs"),
    [
        ("emulator", "emulator", True),
        ("musa4", "musa4", True),
        ("musa4", "musa", True),
        ("musa", "musa5", True),
        ("musa4", "musa5", False),
        ("emulator", "musa4", False),
        ("emulator", "musa", False),
        ("musa", "cuda", False),
        ("musa4", "emulator", False),
    ],
)
def test_kernels_run_with_the_kind_of_sdk_that_they_were_compiled_for(built, here, runs):
    assert sdk.runs_with(built, here) is runs


def test_a_library_declares_its_sdk_in_the_file_beside_it(tmp_path):
    assert sdk.built_for(str(tmp_path / "libpack.so")) is None
    for text, kind in (("musa4\n", "musa4"), ("", None)):
        (tmp_path / "libpack.so.sdk").write_text(text)
        assert sdk.built_for(str(tmp_path / "libpack.so")) == kind


def run_script(*arguments, **environment):
    variables = {name: value for name, value in os.environ.items() if name != "MUSA_HOME"} | environment
    command = [sys.executable, sdk.__file__, *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True)


def test_as_a_script_it_prints_the_home(machine, tmp_path):
    home = machine.install(tmp_path / "chosen")
    done = run_script(MUSA_HOME=home)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{home}\n", "")


def test_as_a_script_it_fails_with_the_reason(tmp_path):
    done = run_script(MUSA_HOME=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "no MUSA SDK was found" in done.stderr


def test_as_a_script_it_needs_the_standard_library_alone(machine, tmp_path):
    home = machine.install(tmp_path / "chosen")
    done = subprocess.run(
        [sys.executable, "-I", "-S", sdk.__file__], env={"MUSA_HOME": home}, capture_output=True, text=True
    )
    assert done.stdout == f"{home}\n", done.stderr
