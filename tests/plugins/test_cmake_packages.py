# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A CMake project finds the installed runtime and emulator in one line, in pip's builds and in plain ones."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

import musa_emulator
from musa_runtime import config
from tests.musa_emulator.sdk import tool

pytestmark = pytest.mark.once

SITE = Path(sysconfig.get_path("purelib"))
PACK = """
cmake_minimum_required(VERSION 3.26)
project(head VERSION 0.1.0 LANGUAGES CXX)
find_package(musa_runtime 0.1 CONFIG REQUIRED COMPONENTS {components})

if(NOT COMMAND musa_add_op_pack OR NOT TARGET musa::musa_runtime)
  message(FATAL_ERROR "the runtime's helpers are missing")
endif()
if(COMMAND musa_compile)
  message(STATUS "kernels by: ${{MUSA_MCC_EXECUTABLE}}")
endif()
message(STATUS "build type: ${{CMAKE_BUILD_TYPE}}")
file(WRITE "${{CMAKE_CURRENT_BINARY_DIR}}/found.txt" "${{musa_runtime_DIR}}")
install(FILES "${{CMAKE_CURRENT_BINARY_DIR}}/found.txt" DESTINATION .)
"""
EMULATOR_LIBRARY = """
cmake_minimum_required(VERSION 3.26)
project(head LANGUAGES CXX)
find_package(musa_emulator 0.1 CONFIG REQUIRED)

message(STATUS "home: ${MUSA_EMULATOR_HOME}")
if(NOT COMMAND musa_emulator_library OR NOT EXISTS "${MUSA_EMULATOR_ENGINE_HEADERS}/engine/state.h")
  message(FATAL_ERROR "the emulator's helpers are missing")
endif()
"""
PROJECT = """
[build-system]
requires = ["scikit-build-core"]
build-backend = "scikit_build_core.build"
[project]
name = "head"
version = "0.1.0"
[tool.scikit-build]
wheel.install-dir = "head"
wheel.py-api = "py3"
"""
# Packages are found only by their entry points, as in an isolated build with site-packages of its own.
BUILD = """
import sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], {"search.site-packages": "false", "build-dir": sys.argv[2]})
"""


def configure(folder: Path, *arguments: str, components: str = "") -> subprocess.CompletedProcess[str]:
    if not (folder / "CMakeLists.txt").exists():
        (folder / "CMakeLists.txt").write_text(PACK.format(components=components))
    command = [tool("cmake"), "-S", str(folder), "-B", str(folder / "b"), "-G", "Ninja"]
    command += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("place", ["prefix", "cmakedir"])
def test_a_plain_build_finds_the_runtime_in_the_given_place(place: str, tmp_path: Path) -> None:
    told = {"prefix": f"-DCMAKE_PREFIX_PATH={SITE}", "cmakedir": f"-Dmusa_runtime_DIR={config.cmake_dir()}"}
    done = configure(tmp_path, told[place])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "build type: Release" in done.stdout and "kernels by:" not in done.stdout
    assert Path((tmp_path / "b" / "found.txt").read_text()).samefile(config.cmake_dir())


def test_a_plain_build_without_a_place_of_the_runtime_is_refused(tmp_path: Path) -> None:
    done = configure(tmp_path)
    assert done.returncode != 0 and "musa_runtimeConfig.cmake" in done.stderr


def test_a_build_type_that_is_named_stays(tmp_path: Path) -> None:
    done = configure(tmp_path, f"-DCMAKE_PREFIX_PATH={SITE}", "-DCMAKE_BUILD_TYPE=Debug")
    assert done.returncode == 0 and "build type: Debug" in done.stdout, done.stdout + done.stderr


def test_the_component_kernels_brings_the_compiler_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    for name in ("kernels", "nothing"):
        (tmp_path / name).mkdir()
    done = configure(tmp_path / "kernels", f"-DCMAKE_PREFIX_PATH={SITE}", components="kernels")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"kernels by: {Path(config.musa_home()) / 'bin' / 'mcc'}" in done.stdout
    done = configure(tmp_path / "nothing", f"-DCMAKE_PREFIX_PATH={SITE}", components="nothing")
    assert done.returncode != 0 and "requested: nothing" in " ".join(done.stderr.split()), done.stderr


def test_a_library_of_the_emulator_finds_it(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(EMULATOR_LIBRARY)
    done = configure(tmp_path, f"-DCMAKE_PREFIX_PATH={SITE}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"home: {musa_emulator.home()}" in done.stdout


@pytest.mark.parametrize("name", ["musa_emulator", "musa_runtime"])
def test_the_entry_point_leads_to_the_package_and_imports_no_torch(name: str) -> None:
    (entry,) = metadata.entry_points(group="cmake.prefix", name=name)
    assert entry.value == name
    code = f"import {name}, sys; from importlib import resources; resources.files({name})"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print('torch' in sys.modules)"], capture_output=True, text=True
    )
    assert done.stdout == "False\n", done.stderr


def test_a_wheel_builds_where_only_the_entry_points_lead_to_the_runtime(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(PACK.format(components="kernels"))
    (source / "pyproject.toml").write_text(PROJECT)
    environment = {**os.environ, "PATH": f"{Path(tool('cmake')).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path), str(tmp_path / "b")],
        cwd=source,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(tmp_path.glob("head-*.whl"))) == 1
    assert Path((tmp_path / "b" / "found.txt").read_text()).samefile(config.cmake_dir())
