# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Telemetry through the optional package mthreads-ml-py: the right call, the right device, helpful errors.

Most tests replace its module by a stand-in with its documented functions, which has figures of a board. The
last one uses the package itself, with the library of the SDK.
"""

import contextlib
import sys
import types

import pytest
import torch

from musa_runtime import telemetry
from musa_runtime.errors import InvalidDeviceError, MusaError, TelemetryUnavailableError
from tests.harness.subprocesses import run_python

pytestmark = pytest.mark.once

FUNCTIONS = ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate", "list_gpu_processes")


class MTMLError(Exception):
    pass


class StandIn(types.ModuleType):
    """`pymtml` for boards at given places of the PCI bus; each board has other figures."""

    def __init__(self, places):
        super().__init__("pymtml")
        self.places = places
        self.opened = 0
        self.handles = []
        self.open_parts = 0
        self.failure = None
        self.processes = []

    def mtmlLibraryInit(self):
        if self.failure == "open":
            raise OSError("Failed to load MTML library on Linux. Tried: libmtml.so.2, libmtml.so")
        self.opened += 1

    def mtmlLibraryInitDeviceByPciSbdf(self, place):
        self.handles.append(place)
        if place not in self.places:
            raise MTMLError("Not Found")
        return ("device", self.places.index(place))

    @contextlib.contextmanager
    def _part(self, kind, device):
        assert device[0] == "device"
        self.open_parts += 1
        yield (kind, device[1])
        self.open_parts -= 1

    def mtmlGpuContext(self, device):
        return self._part("gpu", device)

    def mtmlMemoryContext(self, device):
        return self._part("memory", device)

    def _figure(self, kind, handle, base):
        assert handle[0] == kind
        if self.failure == "figure":
            raise MTMLError("Not Supported")
        return base + handle[1]

    def mtmlGpuGetUtilization(self, gpu):
        return self._figure("gpu", gpu, 10)

    def mtmlMemoryGetUtilization(self, memory):
        return self._figure("memory", memory, 20)

    def mtmlGpuGetTemperature(self, gpu):
        return self._figure("gpu", gpu, 60)

    def mtmlGpuGetClock(self, gpu):
        return self._figure("gpu", gpu, 1500)

    def mtmlDeviceGetPowerUsage(self, device):
        return self._figure("device", device, 120_000)

    def nvmlDeviceGetComputeRunningProcesses(self, device):
        return self.processes


def place_of(properties):
    return f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"


@pytest.fixture
def library(two_devices, monkeypatch):
    """The stand-in, which numbers the boards in reverse order, so that only their places identify them."""
    places = [place_of(two_devices.get_device_properties(index)) for index in (1, 0)]
    assert places[0] != places[1]
    stand_in = StandIn(places)
    monkeypatch.setitem(sys.modules, "pymtml", stand_in)
    return stand_in


@pytest.mark.parametrize(
    "name, figure",
    [
        ("utilization", 10),
        ("memory_usage", 20),
        ("temperature", 60),
        ("clock_rate", 1500),
        ("power_draw", 120_000),
    ],
)
def test_each_figure_is_that_of_the_given_device(library, two_devices, name, figure):
    query = getattr(two_devices, name)
    assert query(0) == figure + 1 and query("musa:1") == figure
    assert query() == figure + 1
    with two_devices.device(1):
        assert query() == figure
    assert library.open_parts == 0


def test_the_library_is_opened_once_and_each_device_once(library, two_devices):
    for _ in range(3):
        two_devices.utilization(0)
        two_devices.temperature(0)
    assert library.opened == 1 and len(library.handles) == 1


def test_processes_are_listed(library, two_devices):
    library.processes = [
        types.SimpleNamespace(pid=4711, usedGpuMemory=3 << 20),
        types.SimpleNamespace(pid=12, usedGpuMemory=None),
    ]
    text = two_devices.list_gpu_processes(1)
    assert text.splitlines()[0] == "GPU:1"
    assert "4711 uses     3.000 MB GPU memory" in text and "12 uses unknown memory" in text


def test_a_library_that_lists_no_processes_is_not_taken_for_an_idle_device(library, two_devices):
    x = torch.ones(1 << 20, device="musa:0")
    text = two_devices.list_gpu_processes(0)
    assert "reports no processes" in text and "MB of the device are in use" in text
    del x


def test_memory_in_use_is_the_drivers_figure_and_needs_no_library(two_devices, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymtml", None)
    two_devices.empty_cache()
    before = two_devices.device_memory_used()
    x = torch.empty(64 << 20, dtype=torch.uint8, device="musa")
    assert two_devices.device_memory_used() >= before + (64 << 20)
    assert (
        two_devices.device_memory_used()
        == sum(two_devices.mem_get_info()) - 2 * two_devices.mem_get_info()[0]
    )
    del x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_the_package_the_error_names_the_package(two_devices, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "pymtml", None)
    with pytest.raises(TelemetryUnavailableError, match="pip install mthreads-ml-py"):
        getattr(two_devices, name)()
    assert issubclass(TelemetryUnavailableError, MusaError)


def test_a_library_that_does_not_open_is_reported_and_tried_again(library, two_devices):
    library.failure = "open"
    with pytest.raises(TelemetryUnavailableError, match=r"libmtml\.so.2(.|\n)*mthreads-gmi"):
        two_devices.utilization()
    library.failure = None
    assert two_devices.utilization() == 11


def test_a_device_that_the_library_does_not_have_is_named_by_its_place(library, two_devices):
    library.places = []
    place = place_of(two_devices.get_device_properties(1))
    with pytest.raises(TelemetryUnavailableError, match=f"musa:1, which is at {place}.*"):
        two_devices.temperature(1)


def test_a_figure_that_is_not_measured_is_an_error_and_nothing_stays_open(library, two_devices):
    library.failure = "figure"
    for name in FUNCTIONS[:-1]:
        with pytest.raises(TelemetryUnavailableError, match="Not Supported"):
            getattr(two_devices, name)()


def test_a_device_that_is_not_there_is_refused(library, two_devices):
    for name in FUNCTIONS:
        with pytest.raises(InvalidDeviceError):
            getattr(two_devices, name)(99)


def test_the_functions_are_those_of_torch_musa(two_devices):
    for name in telemetry.__all__:
        assert getattr(two_devices, name) is getattr(telemetry, name)


def test_the_package_reads_the_library_of_the_sdk_which_is_not_on_the_loaders_path():
    code = """
import torch
from musa_runtime.errors import TelemetryUnavailableError
x = torch.ones(1 << 20, device="musa:1")
print([0 <= torch.musa.utilization(device) <= 100 for device in (0, 1)], torch.musa.memory_usage() <= 100)
try:
    torch.musa.temperature()
except TelemetryUnavailableError as error:
    print("Not Supported" in str(error))
"""
    done = run_python("-c", code, LD_LIBRARY_PATH=None)
    assert done.stdout == "[True, True] True\nTrue\n", done.stderr
