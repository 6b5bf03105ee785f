# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Sizes, counts and offsets near 2^31, 2^32, 2^63 and 2^64 for each parameter that takes one.

test_sizes.py runs this program; it prints the calls that were accepted.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from dataclasses import dataclass

from tests.musa_emulator.refusals import (
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    PAGE,
    RESERVED,
    Access,
    AllocationProp,
    Sdk,
)

BYTES = 16 * PAGE  # of each buffer
ROW, ROWS, SLICES = 64, 8, 4  # a box: bytes, rows, slices; the pitch of its rows is 2 * ROW
PITCH = 2 * ROW
WRAP = 1 << 64

# Products of 16, 128, 512 or 4096 with the second row are just below, at and above a multiple of 2^64.
SIZES = sorted(
    {(1 << exponent) + shift for exponent in (31, 32, 63) for shift in (-1, 0, 1)}
    | {WRAP // factor + shift for factor in (2, 4, 16, 128, 512, 4096) for shift in (-1, 0, 1, 2)}
    | {WRAP - shift for shift in (1, 2, 64, 512, 4096)}
)
# Beyond every process: pageable memory has no size that the SDK could check, page-locked memory no limit.
BEYOND = [size for size in SIZES if size >= 1 << 56]


class Extent(ctypes.Structure):
    _fields_ = [(name, c_size_t) for name in ("width", "height", "depth")]


class Pitched(ctypes.Structure):
    _fields_ = [("pointer", c_void_p), *((name, c_size_t) for name in ("pitch", "xsize", "ysize"))]


class Channel(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("x", "y", "z", "w", "f")]


class Memset(ctypes.Structure):
    _fields_ = [
        ("pointer", c_void_p),
        ("pitch", c_size_t),
        *((name, c_uint) for name in ("value", "element")),
        ("width", c_size_t),
        ("height", c_size_t),
    ]


class Copy3D(ctypes.Structure):
    _fields_ = [
        ("src_array", c_void_p),
        *((f"src_{axis}", c_size_t) for axis in "xyz"),
        ("src", Pitched),
        ("dst_array", c_void_p),
        *((f"dst_{axis}", c_size_t) for axis in "xyz"),
        ("dst", Pitched),
        ("extent", Extent),
        ("kind", c_int),
    ]


def _side(side: str, spatial: bool) -> list:
    return [
        *((f"{side}_{name}", c_size_t) for name in (("x", "y", "z", "lod") if spatial else ("x", "y"))),
        (f"{side}_type", c_int),
        *((f"{side}_{name}", c_void_p) for name in ("host", "device", "array")),
        *([(f"{side}_reserved", c_void_p)] if spatial else []),
        *((f"{side}_{name}", c_size_t) for name in (("pitch", "rows") if spatial else ("pitch",))),
    ]


class Plane(ctypes.Structure):
    _fields_ = [*_side("src", False), *_side("dst", False), ("width", c_size_t), ("height", c_size_t)]


class Box(ctypes.Structure):
    _fields_ = [
        *_side("src", True),
        *_side("dst", True),
        *((name, c_size_t) for name in ("width", "height", "depth")),
    ]


@dataclass
class Case:
    """A function with the usual values of its sizes. `beyond` names those of which only BEYOND is refused."""

    name: str
    call: Callable[..., str]
    usual: dict[str, int]
    beyond: tuple[str, ...] = ()
    sizes: list[int] | None = None

    def sweep(self) -> Iterator[tuple[str, int]]:
        """Yields (the call as text, its result's name) with each size in place of each usual value."""
        for key in self.usual:
            for size in self.sizes or (BEYOND if key in self.beyond else SIZES):
                yield f"{self.name}({key}={size:#x})", self.call(**{**self.usual, key: size})


BOX = {"width": ROW, "height": ROWS, "depth": SLICES}
PLANE = {"width": ROW, "height": ROWS}
SPACE = {
    **BOX,
    **{f"{side}_{axis}": 0 for side in ("src", "dst") for axis in "xyz"},
    **{
        f"{side}_{name}": value
        for side in ("src", "dst")
        for name, value in (("pitch", PITCH), ("rows", ROWS))
    },
}
WHOLE_PAGES = [size // RESERVED * RESERVED for size in BEYOND]


class Calls:
    """The functions with a size, and the objects that each takes."""

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self.device, self.other, self.host = sdk.malloc(BYTES), sdk.malloc(BYTES), sdk.page()
        self.managed = sdk.make("MallocManaged", BYTES, 1)
        self.format = Channel(8, 0, 0, 0, 0)
        self.array = sdk.make("MallocArray", byref(self.format), PITCH, ROWS, 0)
        sdk.runtime.musaMemset3D.argtypes = [Pitched, c_int, Extent]
        sdk.runtime.musaMalloc3D.argtypes = [c_void_p, Extent]
        self.symbol = ctypes.create_string_buffer(BYTES)
        sdk.must("EmulatorRegisterSymbol", self.symbol, BYTES)
        self.graph = sdk.make("GraphCreate", 0)
        self.physical = AllocationProp(1, 0, 1, 0)

    def cases(self) -> Iterator[Case]:
        yield from self.allocations()
        yield from self.virtual_memory()
        yield from self.nodes()
        for asynchronous in (False, True):
            yield from self.linear(asynchronous)
            yield from self.planes(asynchronous)
            yield from self.boxes(asynchronous)
        yield from self.arrays()

    # ---- calls

    def driver(self, name: str, *arguments) -> str:
        passed = tuple(c_size_t(a & (WRAP - 1)) if isinstance(a, int) else a for a in arguments)
        code = getattr(self.sdk.driver, "mu" + name)(*passed)
        return self.sdk.runtime.musaGetErrorName(code).decode().removeprefix("musaError").removeprefix("musa")

    def must(self, name: str, *arguments) -> None:
        status = self.driver(name, *arguments)
        assert status == "Success", f"mu{name}: {status}"

    def enqueue(self, name: str, asynchronous: bool, *arguments) -> str:
        return self.sdk(f"{name}Async", *arguments, None) if asynchronous else self.sdk(name, *arguments)

    def drive(self, name: str, asynchronous: bool, *arguments) -> str:
        return (
            self.driver(f"{name}Async", *arguments, None) if asynchronous else self.driver(name, *arguments)
        )

    def freed(self, release: str, pointer: c_void_p, status: str) -> str:
        if status == "Success" and pointer.value:
            self.sdk.must(release, pointer)
        return status

    # ---- memory

    def allocations(self) -> Iterator[Case]:
        def new(name, release, *after):
            def call(size):
                pointer = c_void_p()
                return self.freed(release, pointer, self.sdk(name, byref(pointer), size, *after))

            return call

        def pitched(width, height):
            pointer = c_void_p()
            status = self.sdk("MallocPitch", byref(pointer), byref(c_size_t()), width, height)
            return self.freed("Free", pointer, status)

        def cube(**extent):
            made = Pitched()
            status = self.sdk("Malloc3D", byref(made), Extent(**extent))
            return self.freed("Free", c_void_p(made.pointer), status)

        def array(width, height):
            made = c_void_p()
            status = self.sdk("MallocArray", byref(made), byref(self.format), width, height, 0)
            return self.freed("FreeArray", made, status)

        def registered(size):
            status = self.sdk("HostRegister", self.host, size, 0)
            return self.freed("HostUnregister", c_void_p(self.host), status)

        def of_driver(size):
            pointer = c_size_t()
            status = self.driver("MemAlloc", byref(pointer), size)
            if status == "Success":
                self.must("MemFree", pointer)
            return status

        def pitched_of_driver(width, height):
            pointer = c_size_t()
            status = self.driver("MemAllocPitch", byref(pointer), byref(c_size_t()), width, height, 4)
            if status == "Success":
                self.must("MemFree", pointer)
            return status

        page = {"size": PAGE}
        yield Case("Malloc", new("Malloc", "Free"), page)
        yield Case("MallocAsync", new("MallocAsync", "Free", None), page)
        yield Case("MallocHost", new("MallocHost", "FreeHost"), page, beyond=("size",))
        yield Case("HostAlloc", new("HostAlloc", "FreeHost", 0), page, beyond=("size",))
        yield Case("MallocManaged", new("MallocManaged", "Free", 1), page, beyond=("size",))
        yield Case("HostRegister", registered, page, beyond=("size",))
        yield Case("MallocPitch", pitched, PLANE)
        yield Case("Malloc3D", cube, BOX)
        yield Case("MallocArray", array, PLANE)
        yield Case("MemAdvise", lambda size: self.sdk("MemAdvise", self.managed, size, 1, 0), page)
        yield Case(
            "MemPrefetchAsync", lambda size: self.sdk("MemPrefetchAsync", self.managed, size, 0, None), page
        )
        yield Case("muMemAlloc", of_driver, page)
        yield Case("muMemAllocPitch", pitched_of_driver, PLANE)

    def virtual_memory(self) -> Iterator[Case]:
        def create(size):
            handle = ctypes.c_ulonglong()
            status = self.driver("MemCreate", byref(handle), size, byref(self.physical), 0)
            if status == "Success":
                self.must("MemRelease", handle)
            return status

        def reserve(size):
            address = c_size_t()
            status = self.driver("MemAddressReserve", byref(address), size, 0, 0, 0)
            if status == "Success":
                self.must("MemAddressFree", address, size)
            return status

        def with_mapping(name):
            def call(size):
                address, handle = c_size_t(), ctypes.c_ulonglong()
                self.must("MemAddressReserve", byref(address), 2 * RESERVED, 0, 0, 0)
                self.must("MemCreate", byref(handle), RESERVED, byref(self.physical), 0)
                mapping = (address, RESERVED, 0, handle, 0)
                if name != "MemMap":
                    self.must("MemMap", *mapping)
                status = {
                    "MemMap": lambda: self.driver("MemMap", address, size, 0, handle, 0),
                    "MemUnmap": lambda: self.driver("MemUnmap", address, size),
                    "MemSetAccess": lambda: self.driver(
                        "MemSetAccess", address, size, byref(Access(1, 0, 3)), 1
                    ),
                }[name]()
                self.driver("MemUnmap", address, RESERVED)  # fails if there is no mapping
                self.must("MemRelease", handle)
                self.must("MemAddressFree", address, 2 * RESERVED)
                return status

            return call

        reserved = {"size": RESERVED}
        yield Case("muMemCreate", create, reserved, sizes=SIZES + WHOLE_PAGES)
        yield Case("muMemAddressReserve", reserve, reserved, sizes=WHOLE_PAGES)
        for name in ("MemMap", "MemSetAccess", "MemUnmap"):
            yield Case(f"mu{name}", with_mapping(name), reserved, sizes=SIZES + WHOLE_PAGES)

    # ---- copies and fills

    def linear(self, asynchronous: bool) -> Iterator[Case]:
        tail = "Async" if asynchronous else ""
        page = {"size": PAGE}
        directions = (
            ("HtoD", self.device, self.host, HOST_TO_DEVICE),
            ("DtoH", self.host, self.device, DEVICE_TO_HOST),
            ("DtoD", self.device, self.other, DEVICE_TO_DEVICE),
        )
        for name, dst, src, kind in directions:

            def copy(size, dst=dst, src=src, kind=kind):
                return self.enqueue("Memcpy", asynchronous, dst, src, size, kind)

            def copy_by_driver(size, name=name, dst=dst, src=src):
                return self.drive(f"Memcpy{name}", asynchronous, dst, src, size)

            yield Case(f"Memcpy{tail} {name}", copy, page)
            yield Case(f"muMemcpy{name}{tail}", copy_by_driver, page)

        def between(size):
            return self.enqueue("MemcpyPeer", asynchronous, self.device, 0, self.other, 0, size)

        def fill(size):
            return self.enqueue("Memset", asynchronous, self.device, 1, size)

        def to_symbol(size, offset):
            place = (self.symbol, self.host, size, offset, HOST_TO_DEVICE)
            return self.enqueue("MemcpyToSymbol", asynchronous, *place)

        def from_symbol(size, offset):
            place = (self.host, self.symbol, size, offset, DEVICE_TO_HOST)
            return self.enqueue("MemcpyFromSymbol", asynchronous, *place)

        yield Case(f"MemcpyPeer{tail}", between, page)
        yield Case(f"Memset{tail}", fill, page)
        yield Case(f"MemcpyToSymbol{tail}", to_symbol, {"size": PAGE, "offset": 0})
        yield Case(f"MemcpyFromSymbol{tail}", from_symbol, {"size": PAGE, "offset": 0})
        for element in ("D8", "D32"):

            def fill_by_driver(count, element=element):
                return self.drive(f"Memset{element}", asynchronous, self.device, 1, count)

            yield Case(f"muMemset{element}{tail}", fill_by_driver, {"count": ROW})

    def planes(self, asynchronous: bool) -> Iterator[Case]:
        tail = "Async" if asynchronous else ""
        directions = (
            (self.device, self.host, HOST_TO_DEVICE, ("src_pitch",)),
            (self.host, self.device, DEVICE_TO_HOST, ("dst_pitch",)),
            (self.device, self.other, DEVICE_TO_DEVICE, ()),
        )
        for dst, src, kind, of_host in directions:

            def copy(width, height, dst_pitch, src_pitch, dst=dst, src=src, kind=kind):
                place = (dst, dst_pitch, src, src_pitch, width, height, kind)
                return self.enqueue("Memcpy2D", asynchronous, *place)

            def square(width, copy=copy):
                return copy(width, ROWS, width, width)

            pitches = {"dst_pitch": PITCH, "src_pitch": PITCH}
            yield Case(f"Memcpy2D{tail} kind {kind}", copy, PLANE | pitches, beyond=of_host)
            yield Case(f"Memcpy2D{tail} kind {kind} dense", square, {"width": ROW})

        def fill(pitch, width, height):
            return self.enqueue("Memset2D", asynchronous, self.device, pitch, 1, width, height)

        def copy_by_driver(**fields):
            plane = Plane(src_type=2, dst_type=2, src_device=self.other, dst_device=self.device, **fields)
            return self.drive("Memcpy2D", asynchronous, byref(plane))

        places = {f"{side}_{axis}": 0 for side in ("src", "dst") for axis in "xy"}
        yield Case(f"Memset2D{tail}", fill, PLANE | {"pitch": PITCH})
        yield Case(f"muMemcpy2D{tail}", copy_by_driver, PLANE | places | pitches)

    def box_parameters(
        self, width, height, depth, src_pitch, dst_pitch, src_rows, dst_rows, **places
    ) -> Copy3D:
        return Copy3D(
            src=Pitched(self.other, src_pitch, ROW, src_rows),
            dst=Pitched(self.device, dst_pitch, ROW, dst_rows),
            extent=Extent(width, height, depth),
            kind=DEVICE_TO_DEVICE,
            **places,
        )

    def boxes(self, asynchronous: bool) -> Iterator[Case]:
        tail = "Async" if asynchronous else ""

        def copy(**fields):
            return self.enqueue("Memcpy3D", asynchronous, byref(self.box_parameters(**fields)))

        def fill(pitch, rows, **extent):
            memory = Pitched(self.device, pitch, ROW, rows)
            return self.sdk("Memset3D", memory, 7, Extent(**extent))

        def copy_by_driver(**fields):
            box = Box(src_type=2, dst_type=2, src_device=self.other, dst_device=self.device, **fields)
            return self.drive("Memcpy3D", asynchronous, byref(box))

        yield Case(f"Memcpy3D{tail}", copy, SPACE)
        if not asynchronous:
            yield Case("Memset3D", fill, BOX | {"pitch": PITCH, "rows": ROWS})
        yield Case(f"muMemcpy3D{tail}", copy_by_driver, SPACE)

    def nodes(self) -> Iterator[Case]:
        def node(name, *arguments):
            return self.sdk(f"GraphAdd{name}Node", byref(c_void_p()), self.graph, None, 0, *arguments)

        def copy(size):
            arguments = (self.graph, None, 0, self.device, self.other, size, DEVICE_TO_DEVICE)
            return self.sdk("GraphAddMemcpyNode1D", byref(c_void_p()), *arguments)

        def fill(pitch, width, height):
            return node("Memset", byref(Memset(self.device, pitch, 1, 1, width, height)))

        def box(**fields):
            return node("Memcpy", byref(self.box_parameters(**fields)))

        yield Case("GraphAddMemcpyNode1D", copy, {"size": PAGE})
        yield Case("GraphAddMemsetNode", fill, PLANE | {"pitch": PITCH})
        yield Case("GraphAddMemcpyNode", box, SPACE)

    def arrays(self) -> Iterator[Case]:
        def rows(x, y, width, height):
            place = (self.array, x, y, self.device, PITCH, width, height, DEVICE_TO_DEVICE)
            return self.sdk("Memcpy2DToArray", *place)

        def piece(x, y, size):
            return self.sdk("MemcpyToArray", self.array, x, y, self.device, size, DEVICE_TO_DEVICE)

        yield Case("Memcpy2DToArray", rows, PLANE | {"x": 0, "y": 0})
        yield Case("MemcpyToArray", piece, {"x": 0, "y": 0, "size": ROW})


def main() -> None:
    sdk = Sdk(*sys.argv[1:3])
    cases = list(Calls(sdk).cases())
    sdk.must("DeviceSynchronize")
    before = sdk.runtime.musaEmulatorLiveAllocations(0)
    refused = [case.name for case in cases if case.call(**case.usual) != "Success"]
    answers = [answer for case in cases for answer in case.sweep()]
    sdk.must("DeviceSynchronize")
    result = {
        "functions": len(cases),
        "parameters": sum(len(case.usual) for case in cases),
        "calls": len(answers),
        "accepted": [call for call, status in answers if status == "Success"],
        "refused": refused,
        "left": sdk.runtime.musaEmulatorLiveAllocations(0) - before,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
