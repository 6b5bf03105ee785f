# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa`: doctor, packs, ops, env, in complete installations and in incomplete ones."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_forked, run_module, run_python

pytestmark = pytest.mark.once


README = Path(__file__).parents[2] / "packages" / "torch-musa" / "README.md"
NO_SDK = {"MUSA_HOME": "/nonexistent/musa"}


def run(*arguments, **environment):
    return run_module("torch_musa", *arguments, **environment)


def outcomes(**environment):
    done = run("doctor", "--json", **environment)
    return done, {outcome["title"]: outcome for outcome in json.loads(done.stdout)}


def test_doctor_passes_every_check_here():
    done, found = outcomes()
    assert done.returncode == 0, done.stdout
    # If the tests were started by the path of the environment's Python, its ninja may not be on PATH.
    assert {outcome["status"] for title, outcome in found.items() if title != "ninja"} == {"ok"}
    assert {
        "torch",
        "MUSA SDK",
        "libraries",
        "allocator settings",
        "devices",
        "allocation",
        "operator",
        "packs",
        "versions",
    } <= found.keys()


def test_the_row_of_the_compiler_is_a_sentence():
    _, found = outcomes()
    detail = found["mcc"]["detail"]
    assert re.fullmatch(r"\S+/mcc runs: the compiler mcc of musa-emulator, based on .*\d\.", detail), detail


def test_doctor_without_sdk_names_the_cause_first_and_the_cure():
    done = run("doctor", **NO_SDK)
    assert done.returncode == 1
    first = done.stdout.index("[FAIL]")
    assert done.stdout[first:].startswith("[FAIL] MUSA SDK")
    for needed in (
        "have:",
        "/nonexistent/musa: no such directory",
        "need:",
        "libmusart.so",
        "Likely causes:",
        "Fix:           unset MUSA_HOME",
        "[skip]",
    ):
        assert needed in done.stdout[first:]
    assert "1 check(s) failed" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_doctor_with_every_device_hidden():
    done, found = outcomes(MUSA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert (
        found["devices"]["status"] == "fail" and found["devices"]["command"] == "unset MUSA_VISIBLE_DEVICES"
    )
    assert found["operator"]["status"] == "skip"


def test_doctor_with_an_unknown_provider():
    done, found = outcomes(TORCH_MUSA_OPS="aten::mm=portd")
    assert done.returncode == 1
    assert any("portd" in outcome["detail"] for outcome in found.values() if outcome["status"] == "fail")


def test_doctor_notices_packages_of_another_version(tmp_path):
    info = tmp_path / "musa_old_pack-0.0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: musa-old-pack\nVersion: 0.0.1\nRequires-Dist: musa-runtime==7.0.*\n"
    )
    done, found = outcomes(PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert done.returncode == 1
    assert found["versions"]["need"] == "musa-runtime==7.0.* (required by musa-old-pack)"
    assert "-m pip install" in found["versions"]["command"]


@pytest.mark.parametrize("failing", ["devices", "operator"])
def test_a_check_that_raises_is_reported_and_the_others_go_on(failing):
    code = f"""
import torch
from torch_musa import doctor
def broken(): raise OSError("struck by lightning")
doctor.CHECKS = [(t, broken if t == {failing!r} else check, needs) for t, check, needs in doctor.CHECKS]
found = {{o.title: o for o in doctor.examine()}}
assert found[{failing!r}].status == "fail" and "lightning" in found[{failing!r}].detail
print(found["torch"].status, found["packs"].status)
"""
    assert run_forked(code).stdout == "ok ok\n"


def test_ops_lists_the_fields_that_the_readme_of_the_format_promises():
    rows = json.loads(run("ops", "--json", "--all").stdout)
    assert len(rows) > 500
    for row in rows:
        assert set(row) == {"op", "provider", "candidates", "calls", "origin"}
        assert re.fullmatch(r"\w+::\w+(\.\w+)?", row["op"]), row
        assert isinstance(row["calls"], int) and row["candidates"]


def test_ops_with_a_pattern_prints_a_table():
    done = run("ops", "aten::*layer_norm*")
    assert done.returncode == 0
    assert "aten::native_layer_norm" in done.stdout and "aten::mm " not in done.stdout
    assert "no operator matches 'nothing_of_the_kind'" in run("ops", "nothing_of_the_kind").stderr


def test_ops_lists_first_what_users_call_and_private_operators_on_demand():
    lines = run("ops", "mm").stdout.splitlines()
    names = [line.split()[0] for line in lines[1 : lines.index("")]]
    assert names[0] == "aten::mm" and names.index("aten::bmm") < names.index("aten::hamming_window")
    assert not [name for name in names if "::_" in name or name.endswith("out")]
    assert "private operators and overloads with out= are left out; --all lists them" in lines[-1]
    every = run("ops", "mm", "--all").stdout
    assert "aten::mm.out" in every and "aten::_int_mm" in every and "are left out" not in every
    # A pattern that names private operators lists them.
    assert "aten::_softmax " in run("ops", "_softmax").stdout
    assert "aten::mm.out" in run("ops", "aten::mm.out").stdout


@pytest.mark.parametrize("command", ["ops", "ops --json"])
def test_ops_without_sdk_fails_with_the_reason(command):
    done = run(*command.split(), **NO_SDK)
    assert done.returncode == 1 and done.stdout == ""
    assert "no MUSA SDK was found" in done.stderr and "Traceback" not in done.stderr


def test_env_reports_versions_settings_and_devices():
    facts = json.loads(run("env", "--json", MUSA_LAUNCH_BLOCKING="1").stdout)
    assert facts["torch"].startswith("2.") and facts["$MUSA_LAUNCH_BLOCKING"] == "1"
    assert facts["runtime"].startswith("loaded") and "mp_" in facts["device 0"]


def test_env_reports_what_surrounds_torch():
    done = run(
        "env",
        "--json",
        MUSA_EMULATOR_DEVICES="2",
        OMP_NUM_THREADS="2",
        PYTORCH_ALLOC_CONF="garbage_collection_threshold:0.8",
    )
    facts = json.loads(done.stdout)
    assert facts["threads"].startswith("2 within an operator")
    assert (
        facts["$OMP_NUM_THREADS"] == "2"
        and facts["$PYTORCH_ALLOC_CONF"] == "garbage_collection_threshold:0.8"
    )
    assert "git " in facts["torch"] and facts["pluggy"] and facts["numpy"]
    assert all(facts[name] for name in ("python", "system", "libc", "processor", "c++", "cmake", "ninja"))
    assert re.search(r"PCI \w{4}:\w{2}:\w{2}, reaches (musa:1|no other device)", facts["device 0"])


def test_env_and_packs_work_on_a_broken_machine():
    facts = json.loads(run("env", "--json", **NO_SDK).stdout)
    assert facts["MUSA SDK"] == "not found" and "/nonexistent/musa" in facts["runtime error"]
    assert run("packs", **NO_SDK).returncode == 0


def test_env_without_a_device_has_no_error_of_a_pack():
    facts = json.loads(run("env", "--json", MUSA_EMULATOR_DEVICES="0").stdout)
    assert facts["distributed: musa_env_report"] == "not read without a device"
    assert not [name for name, value in facts.items() if "raised" in str(value)]


def test_a_reader_that_stops_early_is_no_error():
    code = """
import subprocess, sys
process = subprocess.Popen(
    [sys.executable, "-m", "torch_musa", "ops"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
)
process.stdout.close()
print(process.stderr.read().decode(), process.wait())
"""
    assert run_forked(code).stdout.strip() == "0"


def commands_of(text):
    lines = [line.partition("#")[0] for line in text.splitlines() if line.startswith("python -m torch_musa ")]
    return [line.split()[3:] for line in lines]


def test_the_readmes_commands_run(tmp_path):
    commands = commands_of(README.read_text())
    assert [command[0] for command in commands] == ["doctor", "packs", "ops", "env", "report", "top"]
    for command in commands:
        # In interpreters, as from a user's shell; the other tests here run in forks.
        words = [argument.strip("'") for argument in command]
        done = run_python("-m", "torch_musa", *words, folder=tmp_path)
        assert done.returncode == 0, (command, done.stderr)


def test_the_readmes_program_runs():
    (program,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    done = run_python("-c", program)
    assert done.returncode == 0 and "tensor([2., 2., 2.])" in done.stdout, done.stderr


def test_a_wrong_command_is_refused():
    done = run("cure")
    assert done.returncode == 2 and "usage: python -m torch_musa" in done.stderr
