# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""libmtml over NVML, with a libnvidia-ml.so.1 of known readings. Needs no CUDA toolkit and no GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.musa_cuda.conftest import PACKAGE

pytestmark = pytest.mark.once

EMULATOR = PACKAGE.parent / "musa-emulator"
MTML = EMULATOR / "csrc" / "mtml"
FAKE = Path(__file__).parent / "cpp" / "fake_nvml.cpp"
OPTIONS = (
    "g++",
    "-std=c++20",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    "-shared",
    "-fPIC",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The part of the SDK that these tests use."""
    folder = tmp_path_factory.mktemp("sdk")
    (folder / "lib").mkdir()
    (folder / "driver").mkdir()
    (folder / "bin").mkdir()
    sources = [MTML / "api.cpp", MTML / "unsupported.cpp", PACKAGE / "csrc" / "mtml" / "nvml_devices.cpp"]
    includes = [f"-I{EMULATOR / 'csrc'}", f"-I{EMULATOR / 'csrc' / 'include'}"]
    exports = f"-Wl,--no-undefined,--version-script={MTML / 'exports.map'}"
    for command in (
        [*OPTIONS, *includes, *sources, exports, "-ldl", "-o", folder / "lib" / "libmtml.so"],
        [*OPTIONS, "-fvisibility=default", f"-I{PACKAGE / 'csrc' / 'mtml'}", FAKE,
         "-o", folder / "driver" / "libnvidia-ml.so.1"],
    ):  # fmt: skip
        subprocess.run(command, check=True)
    shutil.copy(EMULATOR / "bin" / "mthreads-gmi", folder / "bin")
    return folder


def environment(home: Path, **variables: str) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": f"{home / 'driver'}:{home / 'lib'}", **variables}


def gmi(home: Path, *arguments: str) -> str:
    return subprocess.run(
        [home / "bin" / "mthreads-gmi", *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_readings_are_those_of_nvml(home: Path) -> None:
    content = json.loads(gmi(home, "-q", "--json"))
    first, second = content["GPU"]
    assert (content["Driver Version"], content["Attached GPUs"]) == ("580.1.2", "2")
    assert first["GPU UUID"] == "00000000-1111-2222-3333-444444444444"
    assert first["PCI"]["Bus ID"] == "00000000:41:00.0" and second["PCI"]["Bus ID"] == "00000000:42:00.0"
    assert (first["PCI"]["Vendor ID"], first["PCI"]["Device ID"]) == ("0x10DE", "0x2335")
    assert first["PCI"]["GPU Link Info"] == {
        "PCIe Generation": {"Max": "5", "Current": "4"},
        "Link Width": {"Max": "16x", "Current": "8x"},
    }
    assert second["FB Memory Usage"] == {"Total": "1024MiB", "Used": "101MiB", "Free": "923MiB"}
    assert first["Utilization"] == {"Gpu": "37%", "Memory": "11%"}
    assert first["Temperature"] == {"GPU Current Temp": "54C"}
    assert first["Power Readings"] == {"Power Draw": "123.45W"}
    assert first["Fan"] == {"Channel": "1", "Fan0": "30%"}
    assert first["Clocks"] == {"Graphics": "1410MHz", "Memory": "1593MHz", "Video": "N/A"}
    assert first["Max Clocks"] == {"Graphics": "1980MHz", "Memory": "2619MHz", "Video": "N/A"}


def test_readings_that_the_device_or_the_driver_lacks_are_not_supported(home: Path) -> None:
    second = json.loads(gmi(home, "-q", "--json"))["GPU"][1]
    assert second["Power Readings"]["Power Draw"] == "N/A" and second["Fan"] == {"Channel": "0"}
    assert second["Serial Number"] == "N/A", "the library has no such function"
    assert second["FB Memory Spec"]["Bus Width"] == "N/A"


def test_all_processes_of_a_device_are_listed(home: Path) -> None:
    rows = [line.split() for line in gmi(home, "-pm").splitlines() if line[:1].isdigit()]
    assert len(rows) == 100 and {row[0] for row in rows} == {"0"}
    assert (rows[0][1], rows[0][-1]) == ("4000000", "1MiB")
    assert (rows[99][1], rows[99][-1]) == ("4000099", "N/A")
    assert "|00000000:41:00.0    |37%   100MiB(1024MiB)\n" in gmi(home)


def test_pymtml_reads_it(home: Path) -> None:
    code = """
from pymtml import *
mtmlLibraryInit()
first, second = (mtmlLibraryInitDeviceByIndex(i) for i in range(2))
print(nvmlDeviceGetMemoryInfo(first).used >> 20, mtmlDeviceGetCpuAffinityWithinNode(first, 2), end=" ")
print(mtmlDeviceGetIndex(mtmlLibraryInitDeviceByPciSbdf("0000:42:00.0")), mtmlDeviceGetBrand(first), end=" ")
for call in (lambda: mtmlDeviceGetP2PStatus(first, second, 0), lambda: mtmlDeviceGetPowerUsage(second)):
    try:
        call()
    except MTMLError as error:
        print(error.value, end=" ")
mtmlLibraryShutDown()
mtmlLibraryInit()
print(mtmlLibraryCountDevice())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(home), capture_output=True, text=True, check=True
    )
    assert done.stdout == "100 [240, 0] 1 1 4 4 2\n"


@pytest.mark.parametrize(
    "status, text", [("9", "Driver Not Loaded"), ("4", "No Permission"), ("15", "Driver Failure")]
)
def test_a_driver_that_does_not_start_is_reported(home: Path, status: str, text: str) -> None:
    done = subprocess.run(
        [home / "bin" / "mthreads-gmi"],
        env=environment(home, FAKE_NVML_STATUS=status),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and text in done.stderr


def test_a_machine_without_nvml_has_no_driver(home: Path) -> None:
    done = subprocess.run(
        [home / "bin" / "mthreads-gmi"],
        env={**environment(home), "LD_LIBRARY_PATH": str(home / "lib")},
        capture_output=True,
        text=True,
    )
    if "Driver Not Loaded" not in done.stderr:  # a machine with an NVIDIA driver
        assert done.returncode == 0
    else:
        assert done.returncode == 1
