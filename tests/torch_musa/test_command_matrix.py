# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every command runs with the core alone, with the extra `all`, and with everything installed."""

import json
import re
from importlib import metadata

import pytest

from tests.harness.installations import FAMILY, Installation
from torch_musa import extras

pytestmark = pytest.mark.once

CORE = {"torch-musa", "musa-runtime", "musa-emulator"}
INSTALLED = {
    "core": CORE,
    "all": CORE
    | {"musa-emulator-mudnn", "musa-emulator-mccl", "musa-emulator-math", *extras.installs()["all"]},
    "everything": set(FAMILY),
}
COMMANDS = ("doctor", "packs", "ops", "env", "tune", "top", "run", "compare", "replay", "stubs")
# Words after `python -m torch_musa`, the status, and a part of the output.
CASES = [
    ("", 2, "doctor"),
    ("--help", 0, "replay"),
    ("--version", 0, f"torch-musa {metadata.version('torch-musa')}"),
    ("nosuch", 2, "invalid choice"),
    *((f"{command} --help", 0, "usage: python -m torch_musa") for command in COMMANDS),
    *((f"{command} --nosuch", 2, "usage: python -m torch_musa") for command in COMMANDS),
    *((command, 2, "required") for command in ("run", "compare", "replay")),
    ("packs", 0, ""),
    ("packs --json", 0, "["),
    ("ops aten::mm", 0, "aten::mm"),
    ("ops nosuch", 1, "no operator matches"),
    ("ops nosuch --json", 1, "[]"),
    ("env", 0, "torch"),
    ("top", 0, "torch_musa top"),
    ("top --json", 0, "{"),
    ("top --interval 0", 2, "usage: python -m torch_musa"),
    ("doctor", 0, "every check passed"),
    ("tune --dry-run --operators nosuch", 1, "Fix: python -m torch_musa ops"),
    ("run script.py an-argument", 0, "ran ['script.py', 'an-argument']"),
    ("run -m script an-argument", 0, "an-argument"),
    ("run nosuch.py", 1, "no such file"),
    ("compare script.py an-argument", 0, "operators compared"),
    ("compare nosuch.py", 2, "Fix:"),
    ("replay nosuch.pt", 1, "Fix:"),
]
PROGRAM = """
import contextlib, io, json, runpy, sys, warnings
found = []
for words, _, _ in json.loads({cases!r}):
    told, status = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), 0
    sys.argv = ["torch_musa", *words.split()]
    path = list(sys.path)
    sys.modules.pop("torch_musa.__main__", None)
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            runpy.run_module("torch_musa", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
            if isinstance(end.code, str):
                print(end.code)
        except BaseException as error:
            status = repr(error)
    sys.path[:] = path
    told.flush()
    found.append([status, told.buffer.getvalue().decode()])
print(json.dumps(found))
"""


MODULES = """
import json, runpy, sys, torch, warnings
warnings.simplefilter("ignore")
found = {{}}
for name in json.loads({names!r}):
    sys.argv, found[name] = [name, "--help"], ""
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        found[name] = str(end.code or "")
    except BaseException as error:
        found[name] = repr(error)
print(json.dumps(found))
"""


@pytest.mark.parametrize("name", INSTALLED)
def test_every_command_runs(name, shared_packages, package_server, tmp_path):
    without = tuple(set(FAMILY) - INSTALLED[name])
    installation = Installation(tmp_path, shared_packages, tmp_path, without)
    folder = installation.prefix
    (folder / "script.py").write_text(
        "import sys, torch\nprint('ran', sys.argv, (torch.ones(2, device='musa') + 1).tolist())\n"
    )
    code = installation.code(installation.environment, PROGRAM.format(cases=json.dumps(CASES)))
    done = package_server.run(code, installation.environment, cwd=str(folder))
    assert done.returncode == 0, done.stderr
    wrong = [
        (words, status, text[-300:])
        for (words, expected, part), (status, text) in zip(CASES, json.loads(done.stdout), strict=True)
        if status != expected or part not in text or "Traceback" in text
    ]
    assert not wrong


def test_every_module_that_packs_offer_runs_with_m(shared_packages, package_server, tmp_path):
    """`python -m torch_musa.utils.simple_porting`, which the vendor documents, and all others."""
    points = metadata.entry_points()
    names = [f"torch_musa.{entry.name}" for entry in points.select(group="torch_musa.submodules.v2")]
    names += [f"torch.musa.{entry.name}" for entry in points.select(group="torch_musa.modules.v2")]
    assert len(names) > 20
    installation = Installation(tmp_path, shared_packages, tmp_path)
    program = MODULES.format(names=json.dumps(names))
    done = package_server.run(
        installation.code(installation.environment, program), installation.environment, cwd=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    # Packages have no code to run; Python says so for any of them.
    wrong = {name: text for name, text in found.items() if text and "is a package and cannot" not in text}
    assert set(found) == set(names) and not wrong


@pytest.mark.parametrize("module", ["musa_port", "musa_compat.converter", "musa_runtime.config"])
def test_other_commands_have_help_and_a_version(module, package_server, shared_packages, tmp_path):
    installation = Installation(tmp_path, shared_packages, tmp_path)
    for words, expected, part in (("--help", 0, "usage:"), ("--version", 0, "0."), ("--nosuch", 2, "usage:")):
        program = f"""
sys.argv = ["x", {words!r}]
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
        code = installation.code(installation.environment, program)
        done = package_server.run(code, installation.environment, cwd=str(tmp_path))
        assert done.returncode == expected and part in done.stdout + done.stderr, done.stdout + done.stderr


def test_no_command_is_left_out():
    from torch_musa import __main__ as commands

    (listed,) = re.findall(r"python -m torch_musa ([\w|]+)`", commands.__doc__)
    assert listed.split("|") == list(COMMANDS)
