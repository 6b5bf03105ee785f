# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py lint --device-pass`: the files that it checks and refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from workspace import ROOT, device_pass

pytestmark = pytest.mark.once

BAD = ROOT / "tests" / "musa_emulator" / "two_pass"

needs_clang = pytest.mark.skipif(
    device_pass.clang_missing() is not None, reason=str(device_pass.clang_missing())
)


@pytest.fixture
def csrc(tmp_path, monkeypatch):
    """The kernels' folder of an empty tree that takes the place of this one."""
    folder = tmp_path / "packages" / "musa-amp" / "csrc"
    folder.mkdir(parents=True)
    monkeypatch.setattr(device_pass, "ROOT", tmp_path)
    monkeypatch.setattr(device_pass, "PACKAGES", tmp_path / "packages")
    monkeypatch.setattr(device_pass, "prepare", list)
    monkeypatch.setattr(device_pass, "kernel_files", lambda: kernel_files(tmp_path))
    return folder


kernel_files = device_pass.kernel_files


@needs_clang
def test_a_bad_file_is_refused(csrc, capsys):
    shutil.copy(BAD / "accepted.mu", csrc / "good.mu")
    assert device_pass.run(everything=False) == 0
    shutil.copy(BAD / "host_method_in_kernel.mu", csrc / "bad.mu")
    assert device_pass.run(everything=False) == 1
    assert "operator float" in capsys.readouterr().out


def test_changed_files_some_with_a_changed_header_and_a_sample_are_chosen(csrc):
    (csrc / "engines").mkdir()
    (csrc / "engines" / "inner.h").write_text("")
    (csrc / "outer.h").write_text('#include "engines/inner.h"\n')
    names = [f"packages/musa-amp/csrc/k{number}.mu" for number in range(40)]
    for number, name in enumerate(names):
        (csrc.parents[2] / name).write_text('#include "outer.h"\n' if number < 20 else "")
    assert kernel_files(csrc.parents[2]) == sorted(names)
    selected, left_out = device_pass.chosen(names, {names[30]}, turn=7)  # from file 28 on
    assert selected == [names[n] for n in (28, 29, 30, 31, 32)] and left_out == 0
    selected, left_out = device_pass.chosen(
        names, {names[3], "packages/musa-amp/csrc/engines/inner.h"}, turn=0
    )
    assert names[3] in selected and len(selected) + left_out == 1 + 19 + device_pass.SAMPLE
    assert sum(name in names[:20] for name in selected) <= 1 + device_pass.MOST_BY_HEADER
    _, left_out = device_pass.chosen(names, {"packages/musa-emulator/csrc/include/musa_runtime.h"}, turn=0)
    assert left_out == len(names) - device_pass.MOST_BY_HEADER


def test_the_samples_of_successive_commits_cover_all_files(csrc):
    names = [f"packages/musa-amp/csrc/k{number:02}.mu" for number in range(10)]
    for name in names:
        (csrc.parents[2] / name).write_text("")
    samples = [device_pass.chosen(names, set(), turn)[0] for turn in range(3)]
    assert all(len(sample) == device_pass.SAMPLE for sample in samples)
    assert set().union(*samples) == set(names)


def test_headers_are_ported_before_a_package_is_installed():
    """Without the folder of installed packages (-S), all modules come from the sources."""
    command = [sys.executable, "-S", "-m", "musa_port", "--list-rules"]
    done = subprocess.run(command, env=device_pass.generator_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "torch" in done.stdout
