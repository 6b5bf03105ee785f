# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa report` writes its file on healthy and broken machines, and no secret is in it."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import pytest

from musa_runtime.errors import MusaError
from tests.harness.installations import FAMILY, Installation
from torch_musa.report import command, machine
from torch_musa.report.masking import Mask

pytestmark = pytest.mark.once

SECTIONS = [
    *("installation", "environment variables", "MUSA SDK", "driver and container", "doctor", "packs"),
    *("devices of the driver", "versions and devices", "first program", "log", "about this file"),
]
USER = "ann.smith"
SECRET = "correct-horse-battery"
# Variables with secrets, and texts that must not be in the file.
PLANTED = {
    "MY_TOKEN": f"{SECRET}-1",
    "AWS_SECRET_ACCESS_KEY": f"{SECRET}-2",
    "DB_PASSWORD": f"{SECRET}-3",
    "UNRELATED": "an-unrelated-value",
    "TORCH_UNDOCUMENTED": "an-undocumented-value",
}
AS_REPORT = """
sys.argv = {arguments!r}
runpy.run_module("torch_musa", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def installed(tmp_path, shared_packages):
    """Makes installations in the home folder of a user, without some packages."""

    def make(*without):
        home = tmp_path / USER
        home.mkdir()
        installation = Installation(home, shared_packages, home, without)
        installation.environment |= {"USER": USER, "LOGNAME": USER, "HOSTNAME": "gpu-box-7"}
        return installation

    return make


def report(installation, server, *arguments, **variables):
    """Runs the command. Returns its result and the sections of its file."""
    environment = {**installation.environment, **variables}
    # Longer than the default, because other tests share the processors.
    words = ["torch_musa", "report", "--seconds", "200", *arguments]
    code = installation.code(environment, AS_REPORT.format(arguments=words))
    done = server.run(code, environment, cwd=str(installation.prefix))
    file = installation.prefix / command.DEFAULT_FILE
    return done, sections(file.read_text()) if file.exists() else {}


def sections(text):
    parts = re.split(r"^==== (.*) ====\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


CORE = {"torch-musa", "musa-runtime", "musa-emulator"}


def test_the_core_alone_has_every_section(installed, package_server):
    done, found = report(installed(*set(FAMILY) - CORE), package_server)
    assert done.returncode == 0, done.stderr
    assert list(found) == SECTIONS
    assert "[ ok ] operator" in found["doctor"] and "the result is right" in found["first program"]
    assert "no op packs are installed" in found["packs"]
    assert "mp_" in found["versions and devices"] and "'name': 'MTT" in found["devices of the driver"]
    assert "musa-amp is not installed" in found["installation"]
    assert "libmusart.so" in found["MUSA SDK"]
    assert '"Run on a Moore Threads card"' in done.stdout and "doctor, packs" in done.stdout


@pytest.mark.parametrize(
    ("variables", "section", "text"),
    [
        ({"MUSA_HOME": "/nowhere"}, "first program", "no MUSA SDK was found"),
        ({"MUSA_EMULATOR_DEVICES": "0"}, "first program", "Traceback"),
    ],
    ids=["no SDK", "no device"],
)
def test_a_broken_machine_has_a_report_with_the_cause(installed, package_server, variables, section, text):
    done, found = report(installed(), package_server, **variables)
    assert done.returncode == 0, done.stderr
    assert list(found) == SECTIONS
    assert text in found[section] and "(exit status 1)" in found[section]
    assert "[FAIL]" in found["doctor"]


def test_a_library_that_is_no_library_has_a_report(installed, package_server):
    installation = installed()
    installation.replace("musa_emulator/sdk/lib/libmusart.so", "not a library")
    done, found = report(installation, package_server)
    assert done.returncode == 0, done.stderr
    assert "[FAIL] libraries" in found["doctor"] and "(exit status 1)" in found["first program"]


def test_no_secret_is_in_the_file(installed, package_server):
    installation = installed()
    # pip's record with credentials, as in an index that needs them.
    record = next(installation.site.glob("torch_musa-*.dist-info")) / "direct_url.json"
    record.write_text(
        json.dumps({"url": f"https://reader:{SECRET}-4@wheels.example/a/torch_musa.whl", "archive_info": {}})
    )
    log = installation.prefix / "train.log"
    log.write_text(f"loss 1.5\nAuthorization: Bearer {SECRET}-5\nread {installation.prefix.parent}/data\n")
    variables = {
        **PLANTED,
        "TORCH_MUSA_OPS": "mudnnn",  # the doctor quotes it
        "PYTORCH_REPO_PATH": f"https://{USER}:{SECRET}-6@host.example/pytorch",  # documented, with a secret
        "CXX": f"{installation.prefix.parent}/bin/c++",
    }
    done, found = report(installation, package_server, "--log", "train.log", **variables)
    assert done.returncode == 0, done.stderr
    text = (installation.prefix / command.DEFAULT_FILE).read_text()
    assert_clean(text, [str(installation.prefix.parent)])
    # The facts around them are there.
    assert "TORCH_MUSA_OPS=mudnnn" in found["environment variables"]
    assert "CXX=~/bin/c++" in found["environment variables"]
    assert "<secret>@wheels.example" in found["installation"]
    assert "loss 1.5" in found["log train.log"] and "read ~/data" in found["log train.log"]
    assert re.search(r"masked \(\d+ home folders, \d+ secrets", found["about this file"])


def assert_clean(text, homes):
    planted = [*PLANTED.values(), SECRET, USER, *homes, "gpu-box-7", *PLANTED]
    names = [name for name in (socket.gethostname(),) if len(name) > 3]
    assert not [word for word in (*planted, *names) if word.lower() in text.lower()]


def test_an_unmasked_report_is_noticed(installed, package_server, monkeypatch):
    """The known-bad case of the test above: without the mask its assertion fails."""
    with pytest.raises(AssertionError):
        assert_clean(f"url https://reader:{SECRET}-4@wheels.example", [])
    with pytest.raises(AssertionError):
        assert_clean(f"{USER} ran it", [])


def test_a_process_that_hangs_or_crashes_costs_one_section(tmp_path, monkeypatch):
    hang = "import time; print('step one', flush=True); time.sleep(600)"
    crash = "import os; print('step two', flush=True); os.kill(os.getpid(), 11)"
    monkeypatch.setattr(
        command, "_PROCESSES", {"hang": ["-c", hang], "crash": ["-c", crash], "ok": ["-c", "print(3)"]}
    )
    monkeypatch.setattr(command, "_FACTS", {"facts": lambda: ["a fact"], "broken": lambda: 1 / 0})
    monkeypatch.setattr(command, "_age", lambda: 0)
    said, status = run_here(tmp_path, "--seconds", "15")
    found = sections((tmp_path / "report.txt").read_text())
    assert status == 0
    assert "step one\n(did not end within the time limit" in found["hang"]
    assert "step two\n(ended by SIGSEGV)" in found["crash"]
    assert found["ok"].strip() == "3" and found["facts"].strip() == "a fact"
    assert "this section failed: ZeroDivisionError" in found["broken"]
    assert "These sections are not complete: hang.\n" in said
    assert said.endswith("Fix: python -m torch_musa report --seconds 220")
    monkeypatch.setattr(command, "_PROCESSES", {"ok": ["-c", "print(3)"]})
    assert "not complete" not in run_here(tmp_path)[0]


def run_here(folder, *arguments):
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(["--output", str(folder / "report.txt"), *arguments]))


def test_a_file_that_is_not_a_report_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_PROCESSES", {})
    (tmp_path / "report.txt").write_text("a thesis")
    with pytest.raises(MusaError, match="is not a report; it was not changed"):
        run_here(tmp_path)
    assert (tmp_path / "report.txt").read_text() == "a thesis"
    (tmp_path / "report.txt").unlink()
    run_here(tmp_path)
    assert run_here(tmp_path)[1] == 0


@pytest.mark.parametrize("arguments", [["--log", "nosuch.log"], ["--output", "no/such/folder/file"]])
def test_files_that_cannot_be_read_or_written_are_named(tmp_path, monkeypatch, arguments):
    monkeypatch.setattr(command, "_PROCESSES", {})
    with pytest.raises(MusaError, match="Fix: "):
        run_here(tmp_path, *arguments)


def test_the_variables_are_those_of_the_guide():
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "environment.md").read_text()
    named = set(
        re.findall(r"`([A-Z][A-Z0-9_]+)`", "\n".join(re.findall(r"^\| (`.*?) \|", guide, re.MULTILINE)))
    )
    assert set(machine.documented_variables()) == named and len(named) > 60


# -- masking


def masked(text, environment=(), homes=("/data/ann",), users=("ann",), hosts=("box.example.com",)):
    return Mask(dict(environment), homes, users, hosts)(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data/ann/x.py and /data/annette", "~/x.py and /data/annette"),
        ("file:///data/ann/wheels", "file://~/wheels"),
        ("/scratch/ann/job_ann_7", "/scratch/<user>/job_<user>_7"),
        ("announcement, Hannah", "announcement, Hannah"),
        ("on box.example.com, box:", "on <host>, <host>:"),
        ("boxes", "boxes"),
        ("git+https://bob:pw@h/r@0123", "git+https://<secret>@h/r@0123"),
        ("git+https://bob:p@ss@h/r", "git+https://<secret>@h/r"),
        ("https://h/r?access_token=abc&x=1", "https://h/r?access_token=<secret>&x=1"),
        ("api-key: 'abc def'", "api-key: <secret>"),
        ('"password": "abc"', '"password": <secret>'),
        ("ghp_0123456789abcdefABCD done", "<secret> done"),
        ("Bearer abcdefgh.12345", "Bearer <secret>"),
        ("Authorization: Basic YWJj", "Authorization: Basic <secret>"),
        ("basic operations", "basic operations"),
        ("torch 2.13.0, 12 tokens", "torch 2.13.0, 12 tokens"),
        ("/" + "home/someone/x", "/" + "home/<user>/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- x", "<secret> x"),
    ],
)
def test_texts_are_masked_and_others_are_kept(text, expected):
    assert masked(text) == expected


def test_values_of_variables_with_secret_names_are_masked_everywhere():
    environment = {
        "HF_TOKEN": "s3cr+t/value",
        "SSH_KEY": "line one\nline two",
        "PORT": "8080",
        "MY_PASS": "x",
    }
    text = "s3cr+t/value s3cr%2Bt%2Fvalue line two 8080 x"
    assert masked(text, environment) == "<secret> <secret> <secret> 8080 x"


def test_common_names_of_accounts_are_kept():
    assert masked("root torch musa_runtime", users=("root", "torch", "")) == "root torch musa_runtime"


def test_this_process_has_a_mask():
    mask = Mask.of_this_process()
    assert mask(os.path.expanduser("~/x")) == "~/x"
