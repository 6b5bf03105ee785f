# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Wheels with kernels name the SDK that they were built for, and with another SDK they are refused by name.

Real wheels of one pack: for the emulator, for a stand-in of the vendor's SDK that computes, and for one whose
libraries lack all symbols of the emulator (tests/harness/vendor_sdk.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import musa_emulator
from musa_runtime import TORCH_MINOR, config
from tests.harness import mixtures, vendor_sdk
from tests.musa_emulator.sdk import tool
from tests.plugins.packs import Environment
from workspace import ROOT, WorkspaceError, packages, sdk_wheels, wheel_check

pytestmark = [pytest.mark.once, pytest.mark.slow]

SOURCES = Path(__file__).parent / "sdk_pack"
# A program that uses the pack and a product, and prints the packs' states.
PROGRAM = """
import json, torch, torch_musa
from torch_musa import plugins
ones = torch.ones(2, 2, device="musa")
found = {"product": (ones @ ones).sum().item()}
found["packs"] = {record.name: [record.status, str(record.error or "")] for record in plugins.records()}
try:
    found["twice"] = torch.ops.sdk_pack.twice(ones).sum().item()
except AttributeError as error:
    found["twice"] = str(error)
print(json.dumps(found))
"""
MUSA_4 = "MUSA SDK 4"


def build(folder: Path, home: Path | None) -> Path:
    """The wheel of the pack for an SDK; for the emulator by default."""
    sources = shutil.copytree(SOURCES, folder / "sources")
    settings = sources / "pyproject.toml"
    settings.write_text(settings.read_text().replace("@tools@", str(ROOT / "tools")))
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", str(folder)]
    done = subprocess.run(
        [*command, str(sources)], env=variables(home), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = folder.glob("*.whl")
    return made


def variables(home: Path | None, **more: str) -> dict[str, str]:
    """The variables of a process with an SDK: the emulator by default."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MUSA_HOME", "TORCH_MUSA_OPS")}
    return {**kept, **({"MUSA_HOME": str(home)} if home else {}), **more}


@pytest.fixture(scope="module")
def other_sdk(tmp_path_factory) -> Path:
    """A stand-in of the vendor's SDK that computes."""
    return vendor_sdk.runnable(tmp_path_factory.mktemp("sdk") / "musa")


@pytest.fixture(scope="module")
def wheel_of_emulator(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("emulator"), None)


@pytest.fixture(scope="module")
def wheel_of_other(tmp_path_factory, other_sdk) -> Path:
    return build(tmp_path_factory.mktemp("other"), other_sdk)


@pytest.fixture(scope="module")
def wheel_without_emulator(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("linkable")
    return build(folder, vendor_sdk.linkable(folder / "musa"))


class Program:
    """An environment with one wheel of the pack beside the installed packages."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.environment = Environment(folder)
        self.environment.install(wheel)

    def run(self, home: Path | None, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.environment.python), *arguments]
        return subprocess.run(
            command, env=variables(home, **more), capture_output=True, text=True, timeout=300
        )

    def report(self, home: Path | None) -> dict:
        done = self.run(home, "-c", PROGRAM)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def with_wheel_of_emulator(tmp_path_factory, wheel_of_emulator) -> Program:
    return Program(tmp_path_factory.mktemp("env"), wheel_of_emulator)


@pytest.fixture(scope="module")
def with_wheel_of_other(tmp_path_factory, wheel_of_other) -> Program:
    return Program(tmp_path_factory.mktemp("env"), wheel_of_other)


def check(wheel: Path, wanted: str = "") -> list[str]:
    return wheel_check.check_wheels([wheel], wanted)


def refused(found: dict) -> dict[str, str]:
    return {name: error for name, (status, error) in found["packs"].items() if status == "incompatible"}


# -- the wheels


def test_version_and_a_file_beside_the_library_name_the_sdk(
    wheel_of_emulator, wheel_of_other, wheel_without_emulator
):
    for wheel, kind in (
        (wheel_of_emulator, "emulator"),
        (wheel_of_other, "musa4"),
        (wheel_without_emulator, "musa4"),
    ):
        assert wheel.name.startswith(f"sdk_pack-1.2.0+torch{TORCH_MINOR}.{kind}-py3-none-"), wheel.name
        with zipfile.ZipFile(wheel) as archive:
            assert archive.read("sdk_pack/lib/libsdk_pack.so.sdk").decode() == f"{kind}\n"


def test_the_check_of_wheels_accepts_a_wheel_only_for_its_sdk(wheel_of_emulator, wheel_without_emulator):
    assert check(wheel_of_emulator) == check(wheel_of_emulator, "emulator") == []
    assert check(wheel_without_emulator) == check(wheel_without_emulator, "musa4") == []
    [found] = check(wheel_of_emulator, "musa4")
    assert "names the SDK emulator, and these wheels are for musa4" in found


def test_the_check_of_wheels_refuses_symbols_of_the_emulator(wheel_of_other):
    """The stand-in that computes has the emulator's mcc, so this wheel claims the wrong SDK."""
    [found] = check(wheel_of_other, "musa4")
    assert "libsdk_pack.so needs" in found and "symbols that only the SDK emulator has" in found


def test_cmake_refuses_a_version_of_another_sdk(tmp_path):
    command = [Path(sys.executable).parent / "cmake", "-S", SOURCES, "-B", tmp_path, "-G", "Ninja"]
    command += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dmusa_runtime_DIR={config.cmake_dir()}"]
    command += [f"-DCMAKE_MAKE_PROGRAM={Path(sys.executable).parent / 'ninja'}"]
    command += [f"-DSKBUILD_PROJECT_VERSION_FULL=1.2.0+torch{TORCH_MINOR}.musa4"]
    done = subprocess.run(command, env=variables(None), capture_output=True, text=True)
    told = " ".join(done.stderr.split())
    assert done.returncode != 0 and "names the SDK musa4, and the SDK at" in told and "Fix: " in told, (
        done.stderr
    )


# -- mixtures


def test_a_pack_of_the_emulator_beside_another_sdk_is_refused(with_wheel_of_emulator, other_sdk, request):
    """So are the installed packs with kernels; the device computes with the others."""
    found = with_wheel_of_emulator.report(other_sdk)
    assert found["product"] == 8 and "twice" in found["twice"]
    packs = refused(found)
    assert {"sdk_pack", "amp", "ported", "vision", "math", "serving"} == set(packs)
    assert {status for name, (status, _) in found["packs"].items() if name not in packs} == {"loaded"}
    version = f"1.2.0+torch{TORCH_MINOR}"
    lines = packs["sdk_pack"].splitlines()
    assert lines[:3] == [
        f"op pack 'sdk_pack' (sdk-pack {version}.emulator) was built for the emulator, "
        f"and the SDK here is {MUSA_4}; it was not loaded.",
        "  have: libsdk_pack.so with kernels for the emulator",
        f"  need: kernels for {MUSA_4}, the SDK at {other_sdk} (from MUSA_HOME)",
    ]
    assert lines[4].startswith("Fix: ") and f"sdk-pack=={version}.musa4" in lines[4]
    assert lines[5].endswith(f"python3 tools/dev.py wheels --sdk {other_sdk}")
    assert lines[6].endswith(f"export MUSA_HOME={musa_emulator.home()}")
    mixtures.check(request, packs["sdk_pack"])


def test_a_pack_of_another_sdk_beside_the_emulator_is_refused(with_wheel_of_other, request):
    found = with_wheel_of_other.report(None)
    assert found["product"] == 8 and "twice" in found["twice"]
    packs = refused(found)
    assert set(packs) == {"sdk_pack"}
    assert {status for name, (status, _) in found["packs"].items() if name not in packs} == {"loaded"}
    assert (
        f"was built for {MUSA_4}, and the SDK here is the emulator; it was not loaded." in packs["sdk_pack"]
    )
    assert f"sdk-pack==1.2.0+torch{TORCH_MINOR}.emulator" in packs["sdk_pack"]
    assert f"export MUSA_HOME=<directory of {MUSA_4}>" in packs["sdk_pack"]
    mixtures.check(request, packs["sdk_pack"])


@pytest.mark.parametrize("kind", ["emulator", "musa4"])
def test_a_pack_beside_its_own_sdk_computes(kind, with_wheel_of_emulator, with_wheel_of_other, other_sdk):
    if kind == "emulator":
        found = with_wheel_of_emulator.report(None)
    else:
        found = with_wheel_of_other.report(other_sdk)
    assert found["packs"]["sdk_pack"] == ["loaded", ""] and found["twice"] == 8


def test_a_library_that_is_linked_with_another_sdk_names_both_and_the_fix(wheel_without_emulator, tmp_path):
    """The wheel without its declaration is like one without kernels, whose file name names no SDK."""
    program = Program(tmp_path / "env", wheel_without_emulator)
    [file] = (tmp_path / "env").rglob("libsdk_pack.so.sdk")
    assert "sdk_pack" in refused(program.report(None))
    file.unlink()
    status, error = program.report(None)["packs"]["sdk_pack"]
    assert status == "incompatible" and "libsdk_pack.so needs libmusart.so.4" in error
    lines = error.splitlines()
    assert "built with an SDK of another major version" in lines[1]
    assert lines[2].startswith("Fix: ") and lines[2].endswith("wheels for the emulator> sdk-pack")
    assert lines[3] == "To run without it: export TORCH_MUSA_DISABLE_PACKS=sdk_pack"
    # A program gets the same text as a warning, before it can miss an operator of the pack.
    done = program.run(None, "-c", "import torch; torch.ones(1, device='musa'); print('goes on')")
    assert done.stdout.strip() == "goes on" and error.splitlines()[0] in done.stderr, done.stderr
    assert "PackWarning" in done.stderr and lines[2] in done.stderr
    done = program.run(None, "-m", "torch_musa", "packs")
    assert "PackWarning" not in done.stderr and lines[2] in done.stdout


def test_doctor_and_a_strict_program_end_with_the_message(
    with_wheel_of_emulator, with_wheel_of_other, other_sdk
):
    for program, home, built, here in (
        (with_wheel_of_emulator, other_sdk, "the emulator", MUSA_4),
        (with_wheel_of_other, None, MUSA_4, "the emulator"),
    ):
        message = f"was built for {built}, and the SDK here is {here}"
        done = program.run(home, "-m", "torch_musa", "doctor", "--json")
        assert done.returncode == 1, done.stdout + done.stderr
        [row] = [row for row in json.loads(done.stdout) if row["title"] == "packs"]
        assert row["status"] == "fail" and f"'sdk_pack' (sdk-pack 1.2.0+torch{TORCH_MINOR}" in row["detail"]
        assert message in row["detail"] and "pip install" in row["command"]
        done = program.run(home, "-c", PROGRAM, TORCH_MUSA_STRICT="1")
        assert done.returncode == 1 and message in done.stderr and "\nFix: " in done.stderr
        done = program.run(home, "-m", "torch_musa", "packs")
        assert done.returncode == 0 and message in done.stdout


# -- the build of the wheels for an SDK


@pytest.mark.parametrize("driver", [True, False])
def test_a_build_without_the_library_of_the_driver_names_the_container(driver, tmp_path):
    home = vendor_sdk.linkable(tmp_path / "musa", "5.2.0")
    if not driver:
        for file in (home / "lib").glob("libmusa.so*"):
            file.unlink()
    module = ROOT / "packages" / "musa-runtime" / "cmake" / "MusaSdk.cmake"
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.22)\nproject(probe LANGUAGES NONE)\ninclude({module})\n"
    )
    command = [
        tool("cmake"),
        f"-DPython_EXECUTABLE={sys.executable}",
        "-S",
        str(tmp_path),
        "-B",
        str(tmp_path / "build"),
    ]
    done = subprocess.run(command, env=variables(home), capture_output=True, text=True, check=False)
    said = " ".join(done.stderr.split())
    assert (done.returncode == 0) == driver, done.stderr
    named = "libmusa.so is neither in" in said and "Fix: install the driver, or start the container" in said
    assert named != driver


def test_a_stand_in_of_sdk_5_has_its_names(tmp_path):
    home = vendor_sdk.linkable(tmp_path / "musa", "5.2.0")
    assert sdk_wheels.kind_of(home) == "musa5"
    names = {path.name for path in (home / "lib").iterdir()}
    assert {"libmusart.so.5", "libmudnncxx.so.5", "libmudnncxx.so"} <= names
    assert "libmudnn.so" not in names and (home / "include" / "mudnncxx" / "mudnn_base.h").exists()


def test_the_emulator_and_its_packages_are_not_built_for_another_sdk():
    names = sdk_wheels.package_names()
    assert {"musa-runtime", "torch-musa", "musa-ops-ported", "musa-amp", "musa-port"} <= set(names)
    left_out = set(packages.package_names()) - set(names)
    assert left_out == {
        "musa-emulator",
        "musa-emulator-mudnn",
        "musa-emulator-mccl",
        "musa-emulator-math",
        "musa-ops-host",
    }


def test_a_folder_that_is_no_sdk_is_refused(tmp_path):
    with pytest.raises(WorkspaceError, match=r"has no lib/libmusart\.so.*\n.*\nFix: install the MUSA SDK"):
        sdk_wheels.kind_of(tmp_path)
    with pytest.raises(WorkspaceError, match=r"is the emulator\.\nFix: python3 tools/dev\.py wheels"):
        sdk_wheels.kind_of(Path(musa_emulator.home()))


def test_the_stand_in_has_no_symbol_of_the_emulator(tmp_path):
    home = vendor_sdk.linkable(tmp_path / "musa")
    assert sdk_wheels.kind_of(home) == "musa4"
    libraries = [path for path in (home / "lib").iterdir() if not path.is_symlink()]
    assert {"libmusart.so.4", "libmudnn.so.4", "libmccl.so.4", "libmufft.so.4"} <= {
        path.name for path in libraries
    }
    symbols = set().union(*map(vendor_sdk.symbols_of, libraries))
    assert {"musaMalloc", "mcclAllReduce", "mufftPlan1d"} <= symbols
    assert not any(map(vendor_sdk.of_the_emulator, symbols))


def test_the_requirements_of_the_build_are_a_part_of_the_pinned_ones():
    text = packages.REQUIREMENTS.read_text()
    lines = sdk_wheels.requirements(text).splitlines()
    assert {"torch", "pluggy", "pybind11", "scikit-build-core", "PyYAML"} <= {
        line.partition("==")[0] for line in lines
    }
    assert set(filter(None, lines)) < set(text.splitlines()) and not any("pytest" in line for line in lines)
    with pytest.raises(WorkspaceError, match="has not the sections"):
        sdk_wheels.requirements("torch==2.13.0\n")
