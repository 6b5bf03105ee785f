# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Wheels name the minor of torch that they were compiled for, in their version and their dependencies."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.harness.clean_environment import CleanEnvironment
from workspace import ROOT, WorkspaceError, torch_metadata

pytestmark = pytest.mark.once

SETTINGS = {"version": "1.2.3", "dependencies": ["musa-runtime==1.2.*", "torch", "pluggy"]}


def torch_of(folder: Path, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    lines = ["__all__ = ['__version__', 'debug']", f"__version__ = {version!r}", "debug = False", ""]
    (folder / "version.py").write_text("\n".join(lines))
    return folder


def test_the_minor_is_read_from_torchs_files(tmp_path):
    for version in ("2.14.0+cu130", "2.14.1", "2.14.0a0+git1"):
        assert torch_metadata.minor_of(torch_of(tmp_path, version)) == "2.14"
    (tmp_path / "version.py").write_text("cuda = '13.0'\n")
    with pytest.raises(WorkspaceError, match=r"has no line(.|\n)*Fix: pip install"):
        torch_metadata.minor_of(tmp_path)


def test_version_and_pin_name_the_minor():
    fields = torch_metadata.for_minor(SETTINGS, "2.14")
    assert fields["version"] == "1.2.3+torch2.14"
    assert fields["dependencies"] == ["musa-runtime==1.2.*", "torch==2.14.*", "pluggy"]
    assert torch_metadata.for_minor(SETTINGS, "2.14", "musa4")["version"] == "1.2.3+torch2.14.musa4"
    for minor in ("2.10", "2.16"):
        with pytest.raises(WorkspaceError, match=rf"torch {minor} is not served(.|\n)*Fix: pip install"):
            torch_metadata.for_minor(SETTINGS, minor)
    with pytest.raises(WorkspaceError, match="without a version"):
        torch_metadata.for_minor({**SETTINGS, "dependencies": ["torch==2.13.*"]}, "2.14")


def test_the_sdk_is_that_of_the_build(tmp_path):
    with pytest.raises(WorkspaceError, match=r"no MUSA SDK was found(.|\n)*Fix: "):
        torch_metadata.sdk_kind({"MUSA_HOME": str(tmp_path)})
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmusart.so").touch()
    (tmp_path / "version.json").write_text('{"musa_runtime": {"version": "5.1.0"}}')
    assert torch_metadata.sdk_kind({"MUSA_HOME": str(tmp_path)}) == "musa5"


# -- in CMake

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(check LANGUAGES CXX)
include({file})
message(STATUS "minor: ${{MUSA_TORCH_MINOR}}")
"""


@pytest.fixture(scope="module")
def cmake_project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    file = ROOT / "packages" / "musa-runtime" / "cmake" / "TorchWheel.cmake"
    (folder / "CMakeLists.txt").write_text(PROJECT.format(file=file))
    return folder


def headers_of_torch(folder: Path, minor: int) -> Path:
    needed = ("include/torch/library.h", "lib/libtorch_cpu.so", "lib/libc10.so", "lib/libtorch_python.so")
    for name in (*needed, "include/torch/headeronly/version.h"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    text = f"#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR {minor}\n" if minor else "\n"
    (folder / "include/torch/headeronly/version.h").write_text(text)
    return folder


def configure(project: Path, build: Path, torch: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    bin_folder = Path(sys.executable).parent
    command = [bin_folder / "cmake", "-S", project, "-B", build, "-G", "Ninja", f"-DMUSA_TORCH_HOME={torch}"]
    command += [f"-DCMAKE_MAKE_PROGRAM={bin_folder / 'ninja'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("minor", "version", "expected"),
    [
        (14, "0.1.0+torch2.14", ""),
        (14, "0.1.0+torch2.14.musa4", ""),
        (14, "0.1.0+torch2.13.musa4", "names torch 2.13, and the torch at"),
        (10, "", "is 2.10; this version can be built for torch 2.11 to 2.15"),
        (16, "", "is 2.16; this version can be built for torch 2.11 to 2.15"),
        (None, "", "defines no TORCH_VERSION_MAJOR"),
        (14, "0.1.0+torch2.13", "names torch 2.13, and the torch at"),
    ],
)
def test_cmake_refuses_a_torch_of_another_minor(cmake_project, tmp_path, minor, version, expected):
    torch = headers_of_torch(tmp_path / "torch", minor)
    done = configure(cmake_project, tmp_path / "b", torch, f"-DSKBUILD_PROJECT_VERSION_FULL={version}")
    if not expected:
        assert done.returncode == 0 and "minor: 2.14" in done.stdout, done.stderr
        return
    told = " ".join(done.stderr.split())
    assert done.returncode != 0 and expected in told and "Fix: " in told, done.stderr


# -- in a build


def test_a_build_without_torch_names_the_cause(tmp_path):
    environment = CleanEnvironment(tmp_path / "venv", "scikit_build_core", "pathspec", "packaging")
    code = """
    import os, sys
    os.chdir(sys.argv[1])
    import scikit_build_core.build as backend
    backend.prepare_metadata_for_build_wheel(sys.argv[2], {})
    """
    package = ROOT / "packages" / "musa-amp"
    done = environment.run("-c", textwrap.dedent(code), str(package), str(tmp_path))
    assert done.returncode != 0 and "torch is not installed in this build's environment" in done.stderr
    assert "Fix: pip install 'torch>=" in done.stderr
