# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The installed files: the layout of a MUSA_HOME, and the tools in its bin folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import musa_emulator
from tests.musa_emulator import sdk
from tests.musa_emulator.sdk import tool

pytestmark = pytest.mark.once


def run_tool(name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(sdk.HOME / "bin" / name)], env=sdk.clean_environment(**variables), capture_output=True, text=True
    )


def test_home_is_laid_out_like_a_musa_home() -> None:
    for path in (
        "include/musa_runtime.h",
        "include/musa.h",
        "lib/libmusart.so",
        "lib/libmusa.so",
        "bin/musaInfo",
        "bin/musa_runtime_version",
        "bin/musa_toolkits_version",
        "bin/mthreads-gmi",
        "lib/libmtml.so",
        "cmake/FindMUSAToolkit.cmake",
        "version.json",
    ):
        assert (sdk.HOME / path).is_file(), path


def test_home_without_the_libraries_says_what_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str):
        raise musa_emulator.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(musa_emulator, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(musa_emulator.importlib.metadata, "distribution", missing)
    with pytest.raises(RuntimeError, match=r"tools/dev\.py setup"):
        musa_emulator.home()


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, musa_emulator; musa_emulator.home(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_version_json() -> None:
    content = json.loads((sdk.HOME / "version.json").read_text())
    assert content["musa_runtime"]["version"] == "4.3.1"


def test_runtime_version_prints_a_quoted_triple_first() -> None:
    done = run_tool("musa_runtime_version")
    assert done.returncode == 0
    assert re.findall(r'"(\d+\.\d+\.\d+)"', done.stdout)[0] == "4.3.1"
    assert run_tool("musa_runtime_version", MUSA_EMULATOR_DEVICES="0").returncode == 0, "needs no device"


def test_toolkits_version_is_json_after_its_name() -> None:
    done = run_tool("musa_toolkits_version")
    assert done.returncode == 0
    assert json.loads(done.stdout.replace("musa_toolkits:", "").strip())["version"] == "4.3.1"
    assert re.findall(r'"(\d+\.\d+\.\d+)"', done.stdout) == ["4.3.1"]


def test_cmake_finds_the_sdk_and_builds_a_program_with_it(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(use LANGUAGES CXX)\n"
        f'list(APPEND CMAKE_MODULE_PATH "{sdk.HOME}/cmake")\n'
        "find_package(MUSAToolkit 4.3 REQUIRED)\n"
        "add_executable(use use.cpp)\ntarget_link_libraries(use PRIVATE MUSA::musart)\n"
    )
    (tmp_path / "use.cpp").write_text(
        "#include <musa_runtime.h>\n"
        "int main() { void* p = nullptr; return musaMalloc(&p, 64) == musaSuccess ? 0 : 1; }\n"
    )
    done = subprocess.run(
        [tool("cmake"), "-S", ".", "-B", "b", "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([tool("cmake"), "--build", "b"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert subprocess.run([str(tmp_path / "b" / "use")], env=sdk.clean_environment()).returncode == 0


def test_info_lists_the_devices() -> None:
    done = run_tool("musaInfo", MUSA_EMULATOR_DEVICES="3", MUSA_EMULATOR_ARCH="mp_22")
    assert done.returncode == 0
    assert done.stdout.count("compute capability: 2.2") == 3
    assert "major: 2" in done.stdout and "minor: 2" in done.stdout


def test_info_without_a_device_fails_and_says_so() -> None:
    done = run_tool("musaInfo", MUSA_VISIBLE_DEVICES="x")
    assert done.returncode == 1
    assert "musaErrorNoDevice" in done.stderr
    assert "MUSA_VISIBLE_DEVICES" in done.stderr
