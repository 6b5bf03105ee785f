# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A library that cannot work beside torch is refused when it is linked, with the causes and the fix."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from musa_runtime import config
from tests.musa_emulator.sdk import tool

pytestmark = pytest.mark.once

SITE = Path(sysconfig.get_path("purelib"))
PROJECT = """
cmake_minimum_required(VERSION 3.26)
project(head LANGUAGES CXX)
find_package(musa_runtime 0.1 CONFIG REQUIRED)
add_library(head SHARED head.cpp)
musa_library_defaults(head)
target_link_libraries(head PRIVATE musa::c10 musa::musart $ENV{MORE_LIBRARIES})
"""
SOURCE = """
#include <sstream>
#include <stdexcept>
#include <string>
namespace c10::detail {
[[noreturn]] void torchCheckFail(const char*, const char*, unsigned int, const std::string&);
}
extern "C" int musaGetDeviceCount(int*);
extern "C" int musaNoSuchCall(int);
int head(int n) {
  std::ostringstream text;
  text << n;
  if (n == 1) throw std::runtime_error(text.str());
  if (n == 2) c10::detail::torchCheckFail("", "", 0, text.str());
  return musaGetDeviceCount(&n)
#ifdef NEEDS_MORE
      + musaNoSuchCall(n)
#endif
      ;
}
"""


def build(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Configures and builds the library with an environment."""
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "head.cpp").write_text(SOURCE)
    made = folder / "build"
    variables = {**os.environ, "MORE_LIBRARIES": "", "CXXFLAGS": "", "LDFLAGS": "", **environment}
    command = [tool("cmake"), "-S", str(folder), "-B", str(made), "-G", "Ninja"]
    command += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}"]
    command += [f"-DCMAKE_PREFIX_PATH={SITE}"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return subprocess.run(
        [tool("cmake"), "--build", str(made)], env=variables, capture_output=True, text=True
    )


def test_a_right_library_is_linked(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert done.returncode == 0 and (tmp_path / "build" / "libhead.so").is_file(), done.stdout
    assert "musa_runtime:" not in done.stdout


@pytest.mark.parametrize(
    "environment, words",
    [
        ({"LDFLAGS": "-static-libstdc++"}, "contains a libstdc++ of its own"),
        ({"LDFLAGS": "-static-libstdc++ -Wl,--exclude-libs,ALL"}, "contains a libstdc++ of its own"),
        ({"CXXFLAGS": "-D_GLIBCXX_USE_CXX11_ABI=0"}, "the C++ ABI from before C++11"),
        ({"CXXFLAGS": "-DNEEDS_MORE"}, "lack musaNoSuchCall"),
    ],
)
def test_a_library_that_cannot_work_is_refused(
    tmp_path: Path, environment: dict[str, str], words: str
) -> None:
    done = build(tmp_path, **environment)
    assert done.returncode != 0 and words in done.stdout, done.stdout + done.stderr
    assert "Likely cause" in done.stdout and "Fix: " in done.stdout
    assert not (tmp_path / "build" / "libhead.so").exists()


def test_a_library_of_another_standard_library_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "libc++.so.1"
    (tmp_path / "other.cpp").write_text("int other() { return 1; }\n")
    command = ["c++", "-shared", "-fPIC", "-Wl,-soname,libc++.so.1", str(tmp_path / "other.cpp")]
    subprocess.run([*command, "-o", str(other)], check=True)
    done = build(tmp_path, LDFLAGS="-Wl,--no-as-needed", MORE_LIBRARIES=str(other))
    assert done.returncode != 0 and "needs libc++" in done.stdout and "Fix: " in done.stdout


@pytest.fixture(scope="module")
def link_check() -> ModuleType:
    path = Path(config.cmake_dir()) / "link_check.py"
    spec = importlib.util.spec_from_file_location("link_check", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_library_for_a_newer_standard_library_is_refused(
    link_check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = str(Path(config.library_dir()) / "libmusa_runtime.so")
    path, newest = link_check._libstdcxx()
    assert newest >= (3, 4, 20) and Path(path).is_file()
    monkeypatch.setattr(link_check, "_libstdcxx", lambda: (path, (3, 4, 9)))
    text = link_check.problem(library, "readelf")
    assert f"{path}, which this Python loads, ends at GLIBCXX_3.4.9" in text and "Fix: " in text


def test_every_library_of_the_packages_passes(link_check: ModuleType) -> None:
    libraries = [
        path
        for path in SITE.glob("musa_*/**/*.so*")
        if path.is_file() and path.suffix != ".sdk" and "sdk" not in path.parts
    ]
    assert len(libraries) >= 8
    assert not [text for path in libraries if (text := link_check.problem(str(path), "readelf"))]


@pytest.mark.parametrize(
    "output, words",
    [
        ("ld: undefined reference to `musa::dnn::Handle::Handle()'\n", "lack musa::dnn::Handle::Handle()"),
        ("ld.lld: error: undefined symbol: mcclCommSplit\n", "lack mcclCommSplit"),
        ("undefined reference to `c10::f(std::__1::basic_string<char>)'\n", "uses libc++"),
        ("undefined reference to `at::f(std::string const&)'\n", "before C++11"),
        ("undefined reference to `my_function()'\n", ""),
        ("undefined reference to `c10::f(std::__cxx11::basic_string<char> const&)'\n", ""),
    ],
)
def test_the_linkers_output_is_explained(link_check: ModuleType, output: str, words: str) -> None:
    text = link_check.explain(output, "/an/sdk")
    assert (words in text and "Fix: " in text) if words else text == ""
