# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The libraries without a GPU: they load, report why there is no device, count calls, and inject faults."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.musa_cuda.conftest import PACKAGE

pytestmark = pytest.mark.once

WITHOUT_GPU = ("musaErrorInsufficientDriver", "musaErrorNoDevice")
PREAMBLE = """
import ctypes, os
rt = ctypes.CDLL(os.environ["LIBRARY"])
rt.musaGetErrorName.restype = rt.musaGetErrorString.restype = ctypes.c_char_p
rt.musaEmulatorCallCount.restype = rt.musaEmulatorApiCallCount.restype = ctypes.c_ulonglong
n = ctypes.c_int(-1)
def count():
    return rt.musaGetErrorName(rt.musaGetDeviceCount(ctypes.byref(n))).decode()
"""


def run(sdk: Path, code: str, status: int = 0, **environment: str) -> str:
    env = {
        **os.environ,
        "LIBRARY": str(sdk / "lib" / "libmusart.so"),
        "CUDA_VISIBLE_DEVICES": "",
        **environment,
    }
    code = PREAMBLE + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout.strip() if status == 0 else done.stderr


def exported(library: Path) -> set[str]:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    return {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}


def test_each_declared_function_is_exported_and_nothing_else(sdk: Path) -> None:
    report = json.loads((sdk / "mapping.json").read_text())
    for library in ("musart", "musa", *({"mupti"} & set(report))):
        found = exported(sdk / "lib" / f"lib{library}.so")
        declared = {*report[library]["forwarded"], *report[library]["by hand"], *report[library]["no equal"]}
        assert declared <= found
        own = {
            name
            for name in found - declared
            if not name.startswith(("musaEmulator", "musa_cuda_", "_ZN9musa_cuda"))
        }
        assert own <= {"__wrap___cudaLaunchKernel"}


def test_there_is_no_device_and_errors_have_the_sdks_names(sdk: Path) -> None:
    assert run(sdk, "print(count())") in WITHOUT_GPU
    text = run(sdk, "print(rt.musaGetErrorString(35).decode()); print(rt.musaGetErrorName(4242).decode())")
    assert text == "MUSA driver version is insufficient for MUSA runtime version\nunrecognized error code"


def test_the_drivers_library_works_without_a_driver(sdk: Path) -> None:
    code = """
    driver = ctypes.CDLL(os.environ["LIBRARY"].replace("libmusart", "libmusa"))
    name = ctypes.c_char_p()
    print(driver.muInit(0) != 0, driver.muGetErrorName(100, ctypes.byref(name)), name.value.decode())
    """
    assert run(sdk, code) == "True 0 MUSA_ERROR_NO_DEVICE"


def test_calls_are_counted(sdk: Path) -> None:
    code = """
    for _ in range(3):
        count()
    of = rt.musaEmulatorApiCallCount
    print(of(b"musaGetDeviceCount"), rt.musaEmulatorCallCount(), of(b"x"))
    """
    assert run(sdk, code) == "3 3 0"


def test_a_fault_is_injected_once_and_stays_for_the_error_query(sdk: Path) -> None:
    code = """
    assert rt.musaEmulatorFailNth(b"musaGetDeviceCount", ctypes.c_ulonglong(2), 999) == 0
    print(count() == "musaErrorUnknown", count(), count() == "musaErrorUnknown", rt.musaGetLastError())
    """
    assert run(sdk, code) == "False musaErrorUnknown False 999"


def test_a_lost_device_stays_lost(sdk: Path) -> None:
    code = """
    assert rt.musaEmulatorFailCall(ctypes.c_ulonglong(1), 719) == 0 and rt.musaEmulatorFaultPending()
    print(count(), count(), rt.musaEmulatorFaultPending())
    """
    assert run(sdk, code) == "musaErrorLaunchFailure musaErrorLaunchFailure 0"


@pytest.mark.parametrize(
    "call",
    [
        'FailNext(b"musaFoldSpace", 1)',
        'FailNth(b"musaMalloc", ctypes.c_ulonglong(0), 1)',
        'FailNext(b"musaMalloc", 0)',
    ],
)
def test_a_fault_that_cannot_happen_is_refused(sdk: Path, call: str) -> None:
    assert run(sdk, f"print(rt.musaEmulator{call})") == "1"


def test_faults_set_in_the_environment(sdk: Path) -> None:
    rule = "musaGetDeviceCount@2=musaErrorInvalidValue"
    assert run(sdk, "count(); print(count())", MUSA_EMULATOR_FAIL=rule) == "musaErrorInvalidValue"
    said = run(sdk, "count()", status=-6, MUSA_EMULATOR_FAIL="musaFoldSpace=musaErrorUnknown")
    assert "musaFoldSpace=musaErrorUnknown" in said and "Fix: unset MUSA_EMULATOR_FAIL" in said


def test_the_variables_of_the_sdk_become_cudas(sdk: Path) -> None:
    code = """
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    count()
    print(libc.getenv(b"CUDA_VISIBLE_DEVICES").decode(), libc.getenv(b"CUDA_LAUNCH_BLOCKING").decode())
    """
    assert run(sdk, code, MUSA_VISIBLE_DEVICES="9", MUSA_LAUNCH_BLOCKING="1") == "9 1"


def test_torch_says_why_the_device_is_not_available(sdk: Path) -> None:
    """The runtime was built against the emulator: the two SDKs have the same ABI."""
    env = {**os.environ, "MUSA_HOME": str(sdk), "CUDA_VISIBLE_DEVICES": ""}
    code = "import torch; print(torch.musa.is_available(), torch.musa.device_count())\n"
    code += "torch.ones(1, device='musa')"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "False 0\n", done.stderr
    reported = r"( \(musaGetDeviceCount returned musaError\w+\))?"  # another error without a driver
    assert re.search(rf"NoDeviceError: no musa device is visible{reported}\. Likely causes:", done.stderr)


def test_objects_are_kept_with_a_graph_and_its_instances(sdk: Path, tmp_path: Path) -> None:
    program, source = tmp_path / "graphs_test", Path(__file__).parent / "cpp" / "graphs_test.cpp"
    command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{PACKAGE / 'csrc'}", source]
    command += ["-o", program, f"-L{sdk / 'lib'}", "-lmusa", f"-Wl,-rpath,{sdk / 'lib'}"]
    subprocess.run(command, check=True)
    subprocess.run([program], check=True)


def test_calls_with_two_graphs_pass_on_what_is_kept_with_one(sdk: Path) -> None:
    lines = (sdk.parent / "build" / "generated" / "musart_forwarders.inc").read_text().splitlines()
    found = {
        re.search(r"(musa\w+)\(", line)[1]: following
        for line, following in itertools.pairwise(lines)
        if line.startswith("extern") and len(re.findall(r"\bmusaGraph(?:Exec)?_t\b", line)) > 1
    }
    assert {"musaGraphClone", "musaGraphInstantiate", "musaGraphExecUpdate"} <= set(found)
    unnoticed = {name for name, call in found.items() if not re.search(r"::(derived|extended)\(", call)}
    # A node's parameters of an instance: what the new child graph keeps is not kept with the instance.
    assert unnoticed <= {"musaGraphExecChildGraphNodeSetParams"}
