# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""libmtml through pymtml: devices, their usage by other processes, and functions without a value."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.musa_emulator import sdk
from tests.musa_emulator.device_processes import machine, on_device, running, started

pytestmark = pytest.mark.once

MIB = 1 << 20
HEADER = (sdk.HOME / "include" / "mtml.h").read_text()
UNSUPPORTED = HEADER.partition("---- MTML_ERROR_NOT_SUPPORTED")[2]
PREAMBLE = """
import ctypes, json
from pymtml import *
mtmlLibraryInit()
devices = [mtmlLibraryInitDeviceByIndex(i) for i in range(mtmlLibraryCountDevice())]
def code_of(function, *arguments):
    try:
        function(*arguments)
    except MTMLError as error:
        return error.value
    return 0
"""


def mtml(code: str, environment: dict[str, str]) -> Any:
    """The value of `result` after code that runs with pymtml and its library open."""
    program = PREAMBLE + textwrap.dedent(code) + "\nprint(json.dumps(result))\n"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def used(environment: dict[str, str]) -> list[int]:
    """MiB in use on each device."""
    return [
        size // MIB
        for size in mtml("result = [nvmlDeviceGetMemoryInfo(d).used for d in devices]", environment)
    ]


# ---- identity --------------------------------------------------------------------------------------------


def test_all_devices_are_listed_with_the_identity_that_programs_get_from_the_runtime() -> None:
    code = """
    result = [
        [mtmlDeviceGetIndex(d), mtmlDeviceGetName(d), mtmlDeviceGetUUID(d), mtmlDeviceGetPciInfo(d).sbdf]
        for d in devices
    ]
    """
    found = mtml(code, machine(MUSA_VISIBLE_DEVICES="1"))
    assert found == [
        [
            index,
            "MTT S5000 (emulated)",
            str(uuid.UUID(bytes=f"musa-emu-{index:06d}\0".encode())),
            f"00000000:{index + 1:02x}:00.0",
        ]
        for index in range(3)
    ]


def test_properties_agree_with_those_of_the_runtime() -> None:
    code = """
    gpu, memory = mtmlDeviceInitGpu(devices[2]), mtmlDeviceInitMemory(devices[2])
    result = {
        "clockRate": mtmlGpuGetMaxClock(gpu) * 1000,
        "memoryClockRate": mtmlMemoryGetMaxClock(memory) * 1000,
        "memoryBusWidth": mtmlMemoryGetBusWidth(memory),
        "multiProcessorCount": mtmlDeviceCountGpuCores(devices[2]),
        "totalGlobalMem": mtmlMemoryGetTotal(memory),
        "driver": mtmlSystemGetDriverVersion(mtmlLibraryInitSystem()),
        "fans": mtmlDeviceCountFan(devices[2]),
        "virtual": mtmlDeviceGetProperty(devices[2]).virtCap,
    }
    """
    environment = machine(MUSA_EMULATOR_ARCH="mp_22")
    found = mtml(code, environment)
    info = subprocess.run(
        [sdk.HOME / "bin" / "musaInfo"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert (found.pop("fans"), found.pop("virtual")) == (0, 0)
    assert f"driver version: {found.pop('driver')}\n" in info
    for name, value in found.items():
        assert f"\n{name}: {value}\n" in info, name


def test_devices_are_found_by_address_and_uuid() -> None:
    code = """
    index = mtmlDeviceGetIndex
    result = [
        index(mtmlLibraryInitDeviceByPciSbdf("0000:03:00.0")),
        index(mtmlLibraryInitDeviceByPciSbdf("00000000:02:00.0")),
        index(mtmlLibraryInitDeviceByUuid(mtmlDeviceGetUUID(devices[1]).upper())),
        code_of(mtmlLibraryInitDeviceByPciSbdf, "0000:09:00.0"),
        code_of(mtmlLibraryInitDeviceByPciSbdf, "nonsense"),
        code_of(mtmlLibraryInitDeviceByUuid, "nonsense"),
        code_of(mtmlLibraryInitDeviceByIndex, 3),
    ]
    """
    assert mtml(code, machine()) == [2, 1, 1, 7, 3, 7, 7]


def test_a_machine_without_devices_has_none() -> None:
    environment = {**machine(), "MUSA_EMULATOR_DEVICES": "0"}
    assert mtml("result = mtmlLibraryCountDevice()", environment) == 0


def test_an_invalid_setting_is_named_and_refused() -> None:
    environment = {**machine(), "MUSA_EMULATOR_MACHINE": "a/b"}
    done = subprocess.run(
        [sys.executable, "-c", "import pymtml; pymtml.mtmlLibraryInit()"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert 'MUSA_EMULATOR_MACHINE="a/b" is invalid' in done.stderr and "DriverFailure" in done.stderr


# ---- usage -----------------------------------------------------------------------------------------------


def test_memory_of_all_processes_counts_until_they_free_it_or_are_killed() -> None:
    environment = machine()
    with (
        running(on_device(1, 48), environment) as first,
        running(on_device(1, 16) + on_device(2, 8), {**environment, "MUSA_VISIBLE_DEVICES": "2,1,0"}),
    ):
        assert used(environment) == [8, 64, 0]
        first.kill()
        first.wait()
        assert used(environment) == [8, 16, 0]
    assert used(environment) == [0, 0, 0]
    with running(on_device(0, 32) + "ok(rt.musaFree(p))", environment):
        assert used(environment) == [0, 0, 0]


def test_physical_memory_of_the_driver_counts() -> None:
    code = """
    driver = ctypes.CDLL(rt._name.replace("libmusart", "libmusa"))
    class Property(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int * 2),
                    ("rest", ctypes.c_byte * 64)]
    ok(rt.musaSetDevice(0))
    property, handle = Property(type=1), ctypes.c_ulonglong()
    property.location[0] = 1
    assert driver.muMemCreate(ctypes.byref(handle), ctypes.c_size_t(6 << 20), ctypes.byref(property), 0) == 0
    """
    environment = machine()
    with running(code, environment):
        assert used(environment) == [6, 0, 0]


def test_a_forked_child_does_not_count_a_second_time_or_after_its_parent() -> None:
    environment = machine()
    code = """
    child = os.fork()
    if child == 0:
        import time
        time.sleep(60)
    print(child, flush=True)
    sys.stdin.read()
    """
    with started(on_device(0, 24) + textwrap.dedent(code), environment) as (parent, line):
        child = int(line)
        try:
            assert used(environment) == [24, 0, 0]
            parent.kill()
            parent.wait()
            assert used(environment) == [0, 0, 0]
        finally:
            os.kill(child, 9)


def test_processes_of_another_machine_are_not_shown() -> None:
    with running(on_device(0, 8), machine()):
        assert used(machine()) == [0, 0, 0]


def test_a_process_that_closed_its_standard_streams_keeps_its_descriptors_free() -> None:
    code = """
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    malloc(1 << 20)
    os._exit(7 if any(os.path.lexists(f"/proc/self/fd/{number}") for number in (0, 1, 2)) else 8)
    """
    assert sdk.run(code).returncode == 8


def test_utilization_is_of_the_device_on_which_operations_run() -> None:
    code = """
    def forever():
        while True:
            rt.musaMemset(p, 0, ctypes.c_size_t(64 << 20))
    """
    read = """
    import time
    result = [[nvmlDeviceGetUtilizationRates(d).gpu for d in devices]]
    for _ in range(50):  # the process may not run while it is sampled
        if result[-1][1] > 0:
            break
        time.sleep(0.2)
        result.append([nvmlDeviceGetUtilizationRates(d).gpu for d in devices])
    """
    environment = machine()
    with running(on_device(1, 64) + textwrap.dedent(code), environment):
        *_, last = mtml(read, environment)
        assert last[0] == last[2] == 0 and 0 < last[1] <= 100


def test_a_host_function_leaves_the_device_idle() -> None:
    code = """
    import threading
    hold = HOST_FUNCTION(lambda data: threading.Event().wait())
    s = stream()
    threading.Thread(target=lambda: rt.musaLaunchHostFunc(s, hold, None), daemon=True).start()
    """
    environment = machine()
    with running(on_device(0, 1) + textwrap.dedent(code), environment):
        rates = "result = [nvmlDeviceGetUtilizationRates(d).gpu for d in devices]"
        assert mtml(rates, environment) == [0, 0, 0]


# ---- functions -------------------------------------------------------------------------------------------


def test_every_function_that_pymtml_calls_is_exported() -> None:
    import pymtml

    called = set(re.findall(r'_mtmlGetFunctionPointer\("(\w+)"\)', Path(pymtml.__file__).read_text()))
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", sdk.HOME / "lib" / "libmtml.so"],
        capture_output=True,
        text=True,
        check=True,
    )
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert len(called) > 100 and called - exported == set()


def test_functions_without_a_value_say_so() -> None:
    names = re.findall(r"\b(mtml\w+)\(\s*const MtmlDevice\* device\)|\b(mtml\w+)\(", UNSUPPORTED)
    names = sorted({first or second for first, second in names})
    assert len(names) > 60
    code = f"""
    library = ctypes.CDLL("libmtml.so")
    result = [name for name in {names!r} if getattr(library, name)(devices[0], 0, 0, 0, 0) != 4]
    result.append(code_of(mtmlDeviceGetPowerUsage, devices[0]))
    with mtmlGpuContext(devices[0]) as gpu:
        result.append(code_of(mtmlGpuGetTemperature, gpu))
    result.append(nvmlDeviceGetTotalEccErrors(devices[0], 0, 0))
    """
    assert mtml(code, machine()) == [4, 4, 0]


def test_invalid_arguments_are_refused() -> None:
    code = """
    library, handle = ctypes.CDLL("libmtml.so"), ctypes.c_void_p()
    assert library.mtmlLibraryInit(ctypes.byref(handle)) == 0
    number, text = ctypes.c_uint(), ctypes.create_string_buffer(8)
    result = [
        library.mtmlLibraryInit(None),
        library.mtmlLibraryCountDevice(None, ctypes.byref(number)),
        library.mtmlLibraryCountDevice(handle, None),
        library.mtmlDeviceGetIndex(None, ctypes.byref(number)),
        library.mtmlDeviceGetName(devices[0], None, 64),
        library.mtmlDeviceGetName(devices[0], text, 8),
        library.mtmlGpuGetUtilization(None, ctypes.byref(number)),
        library.mtmlDeviceGetFanSpeed(devices[0], 0, ctypes.byref(number)),
    ]
    library.mtmlErrorString.restype = ctypes.c_char_p
    result += [library.mtmlErrorString(code).decode() for code in (0, 4, 12345)]
    """
    assert mtml(code, machine()) == [3, 3, 3, 3, 3, 6, 3, 3, "Success", "Not Supported", "Unknown Error"]


def test_the_library_closes_with_its_last_handle() -> None:
    code = """
    mtmlLibraryInit()
    mtmlLibraryShutDown()
    still = mtmlLibraryCountDevice()
    mtmlLibraryShutDown()
    result = [still, code_of(mtmlLibraryCountDevice)]
    mtmlLibraryInit()
    result.append(mtmlDeviceGetIndex(mtmlLibraryInitDeviceByIndex(2)))
    """
    assert mtml(code, machine()) == [3, 3, 2]


def test_affinity_is_that_of_the_host_and_devices_are_peers() -> None:
    code = """
    import os
    mask = sum(1 << processor for processor in os.sched_getaffinity(0))
    found = sum(word << 64 * i for i, word in enumerate(mtmlDeviceGetCpuAffinityWithinNode(devices[0], 16)))
    result = [
        mask == found,
        any(mtmlDeviceGetMemoryAffinityWithinNode(devices[0], 16)),
        mtmlDeviceGetP2PStatus(devices[0], devices[1], MTML_P2P_CAPS_READ),
        mtmlDeviceGetTopologyLevel(devices[0], devices[0]),
        code_of(mtmlDeviceGetTopologyLevel, devices[0], devices[1]),
    ]
    """
    assert mtml(code, machine()) == [True, True, 0, 0, 4]
