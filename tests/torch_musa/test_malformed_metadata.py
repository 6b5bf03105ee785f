# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Malformed metadata of one distribution breaks neither `import torch` nor the other packs."""

import itertools
import os
import re
from importlib import metadata

import pytest

from musa_runtime import installation
from tests.harness.subprocesses import run_python

pytestmark = pytest.mark.once

METADATA = {
    "undecodable": b"Name: undecodable\nVersion: 1\nSummary: \xff\xfe\n",
    "empty": b"",
    "no_names": b"no metadata\n",
    "no_values": b"Name:\nVersion:\n",
}


def test_packs_with_malformed_metadata_are_recorded(tmp_path):
    for name, text in METADATA.items():
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_bytes(text)
        (info / "entry_points.txt").write_text(
            f"[torch_musa.plugins.v2]\n{name} = 1 2 3:::\n[torch_musa.modules.v2]\n{name} = a:b:c\n"
            f"[torch_musa.run_options.v2]\n{name} = os:nosuch\n[torch_musa.import.v2]\n{name} = nosuch:f\n"
        )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run_python("-m", "torch_musa", "packs", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    statuses = dict(re.findall(r"^(\w+) .*?(failed|loaded)", done.stdout, re.MULTILINE))
    assert {statuses[name] for name in METADATA} == {"failed"} and statuses["mudnn"] == "loaded"
    assert done.stdout.count("could not be loaded") == len(METADATA)


def test_malformed_records_of_the_installer_are_ignored(monkeypatch):
    values = (None, 3, "x", [], {}, True, "file:///nosuch", {"vcs": 3})
    records = [*values]
    for url, value, folder in itertools.product(values, values, values):
        records += [{"url": url, "dir_info": value}, {"url": url, "vcs_info": value, "subdirectory": folder}]
    for record in records:
        monkeypatch.setattr(installation, "_direct_url", lambda name, record=record: record)
        assert "pip install" in installation.command("musa-runtime"), record
    for text in ("{", "\ud800", "[" * 100_000, "NaN"):
        monkeypatch.undo()
        monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda self, name, t=text: t)
        assert "pip install" in installation.command("musa-runtime"), text[:9]
