# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""muDNN's C++ API is mudnn.h and libmudnn.so in SDK 4, mudnncxx/mudnn.h and libmudnncxx.so in SDK 5."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.utils.cpp_extension

import musa_emulator
from musa_runtime import config, errors, sdk
from tests.harness import skips

pytestmark = [pytest.mark.once, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
EMULATOR = ROOT / "packages" / "musa-emulator-mudnn"
PACK = ROOT / "packages" / "musa-ops-mudnn" / "csrc"
SITE_PACKAGES = Path(torch.__file__).parents[1]
LIBRARY = {4: "libmudnn.so", 5: "libmudnncxx.so"}
HEADER = {4: "include/mudnn.h", 5: "include/mudnncxx/mudnn.h"}


def cmake() -> str:
    found = shutil.which(
        "cmake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    assert found, "cmake is missing. Fix: python3 tools/dev.py setup"
    return found


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **variables}
    return subprocess.run(
        [str(part) for part in command], env=env, capture_output=True, text=True, timeout=300, check=False
    )


def configure_emulator(build: Path, layout: str) -> subprocess.CompletedProcess[str]:
    options = [f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_PREFIX_PATH={SITE_PACKAGES}"]
    return run(cmake(), "-S", EMULATOR, "-B", build, *options, MUSA_EMULATOR_SDK=layout)


@pytest.fixture(scope="module", params=[4, 5])
def home(request, tmp_path_factory):
    """The emulator's MUSA_HOME in one of the layouts, with the headers that muDNN's build installs."""
    layout = request.param
    folder = tmp_path_factory.mktemp(f"sdk{layout}")
    done = configure_emulator(folder / "build", str(layout))
    assert done.returncode == 0, done.stdout + done.stderr
    install = [cmake(), "--install", folder / "build", "--component", "headers", "--prefix", folder]
    done = run(*install)
    assert done.returncode == 0, done.stdout + done.stderr
    musa_home = folder / "sdk"
    installed = Path(musa_emulator.home())
    for path in installed.rglob("*"):
        target = musa_home / path.relative_to(installed)
        if path.is_file() and "mudnn" not in path.name and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path)
    # The library is the installed one, under the file name that the SDK's layout has.
    (musa_home / "lib" / LIBRARY[layout]).symlink_to(
        sdk.library(sdk.MUDNN, "muDNN", "", "musa-emulator-mudnn")
    )
    if layout == 5:
        (musa_home / "lib" / "libmudnn.so").touch()  # the C API's library, which must not be used
    return musa_home, layout


def test_the_emulator_has_either_layout(home):
    musa_home, layout = home
    assert (musa_home / HEADER[layout]).is_file()
    assert (musa_home / "include" / "mudnncxx").is_dir() == (layout == 5)
    text = (musa_home / "include" / "mudnn.h").read_text()
    assert ("mudnnHandle_t" in text) == (layout == 5), "mudnn.h is the C API in SDK 5 only"


def test_another_layout_is_refused(tmp_path):
    done = configure_emulator(tmp_path, "6")
    assert done.returncode != 0
    assert "MUSA_EMULATOR_SDK=6 is not a layout of the SDK" in done.stderr and "Fix:" in done.stderr


def test_the_packs_support_code_compiles_against_it(home):
    musa_home, layout = home
    compiler = shutil.which("c++")
    if compiler is None:
        skips.skip_permanently("glibc-tools", "a C++ compiler")
    folders = [PACK, config.include_dir(), musa_home / "include", *torch.utils.cpp_extension.include_paths()]
    options = [
        "-std=c++20",
        "-fsyntax-only",
        "-H",
        "-DAT_PER_OPERATOR_HEADERS",
        *(f"-I{path}" for path in folders),
    ]
    done = run(compiler, *options, PACK / "support" / "elementwise.cpp")
    assert done.returncode == 0, done.stderr
    included = {Path(line.split()[-1]) for line in done.stderr.splitlines() if line.startswith(".")}
    assert musa_home / HEADER[layout] in included
    assert (musa_home / "include" / "mudnn.h" in included) == (layout == 4)


def test_cmake_links_the_library_of_the_c_plus_plus_interface(home, tmp_path):
    musa_home, layout = home
    (tmp_path / "version.cpp").write_text(
        "#include <musa_runtime/mudnn.h>\nauto version() { return musa::dnn::GetVersion(); }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.26)\nproject(version LANGUAGES CXX)\n"
        "find_package(musa_runtime CONFIG REQUIRED)\n"
        "musa_add_op_pack(version SOURCES version.cpp LIBRARIES musa::mudnn)\n"
    )
    build = tmp_path / "build"
    options = [f"-Dmusa_runtime_DIR={config.cmake_dir()}", f"-DPython_EXECUTABLE={sys.executable}"]
    done = run(cmake(), "-S", tmp_path, "-B", build, *options, MUSA_HOME=str(musa_home))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"muDNN: {musa_home / 'lib' / LIBRARY[layout]}" in done.stdout
    done = run(cmake(), "--build", build, MUSA_HOME=str(musa_home))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_library_to_load_is_the_c_plus_plus_one(home, monkeypatch):
    musa_home, layout = home
    monkeypatch.setenv("MUSA_HOME", str(musa_home))
    assert sdk.library(sdk.MUDNN, "muDNN", "", "musa-emulator-mudnn") == str(
        musa_home / "lib" / LIBRARY[layout]
    )


def test_the_error_for_an_sdk_with_neither_names_both(tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmusart.so").touch()
    monkeypatch.setenv("MUSA_HOME", str(tmp_path))
    with pytest.raises(errors.LibraryLoadError, match=r"has no lib/libmudnn\.so or lib/libmudnncxx\.so"):
        sdk.library(sdk.MUDNN, "muDNN", "it is not installed.", "musa-emulator-mudnn")
