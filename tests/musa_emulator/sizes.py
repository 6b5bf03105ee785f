# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Sizes, counts and offsets near 2^31, 2^32, 2^63 and 2^64 for each parameter of the SDK's functions that takes
one. test_sizes.py runs this program; it prints the calls that were accepted."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p

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


Call = Callable[..., str]


class Calls:
    """The functions with a size. A call is (name, parameters with usual values, sizes to pass instead)."""

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self.device, self.other, self.host = sdk.malloc(BYTES), sdk.malloc(BYTES), sdk.page()
        self.managed = sdk.make("MallocManaged", BYTES, 1)
        self.format = Channel(8, 0, 0, 0, 0)
        self.array = sdk.make("MallocArray", byref(self.format), PITCH, ROWS, 0)
        sdk.runtime.musaMemset3D.argtypes = [Pitched, c_int, Extent]
        sdk.runtime.musaMemset3DAsync.argtypes = [Pitched, c_int, Extent, c_void_p]
        sdk.runtime.musaMalloc3D.argtypes = [c_void_p, Extent]
        sdk.runtime.musaMalloc3DArray.argtypes = [c_void_p, c_void_p, Extent, c_uint]
        self.symbol = ctypes.create_string_buffer(BYTES)
        assert sdk("EmulatorRegisterSymbol", self.symbol, BYTES) == "Success"
        self.graph = sdk.make("GraphCreate", 0)
        self.physical = AllocationProp(1, 0, 1, 0)

    def driver(self, name: str, *arguments) -> str:
        passed = tuple(c_size_t(a & (WRAP - 1)) if isinstance(a, int) else a for a in arguments)
        code = getattr(self.sdk.driver, "mu" + name)(*passed)
        return self.sdk.runtime.musaGetErrorName(code).decode().removeprefix("musaError").removeprefix("musa")

    def released(self, release: str, pointer: c_void_p, status: str) -> str:
        if status == "Success" and pointer.value:
            self.sdk.must(release, pointer)
        return status

    def new(self, name: str, *arguments, release: str = "Free") -> str:
        pointer = c_void_p()
        return self.released(release, pointer, self.sdk(name, byref(pointer), *arguments))

    def pitched(self, width: int, height: int) -> str:
        pointer = c_void_p()
        return self.released(
            "Free", pointer, self.sdk("MallocPitch", byref(pointer), byref(c_size_t()), width, height)
        )

    def cube(self, width: int, height: int, depth: int) -> str:
        made = Pitched()
        status = self.sdk("Malloc3D", byref(made), Extent(width, height, depth))
        return self.released("Free", c_void_p(made.pointer), status)

    def array_3d(self, width: int, height: int, depth: int) -> str:
        made = c_void_p()
        extent = Extent(width, height, depth)
        status = self.sdk("Malloc3DArray", byref(made), byref(self.format), extent, 0)
        return self.released("FreeArray", made, status)

    def registered(self, size: int) -> str:
        status = self.sdk("HostRegister", self.host, size, 0)
        if status == "Success":
            self.sdk.must("HostUnregister", self.host)
        return status

    def copy_3d(self, asynchronous: bool, **fields: int) -> str:
        return self.enqueue("Memcpy3D", asynchronous, byref(self.parameters_3d(**fields)))

    def parameters_3d(self, **fields: int) -> Copy3D:
        side = {"pitch": PITCH, "xsize": ROW, "ysize": ROWS}
        pitches = {
            name: {**side, **{key[4:]: fields.pop(key) for key in list(fields) if key[:4] == f"{name}_"}}
            for name in ("src", "dst")
        }
        places = {}
        for name, values in pitches.items():
            places |= {f"{name}_{axis}": values.pop(axis, 0) for axis in "xyz"}
        return Copy3D(
            src=Pitched(self.other, *pitches["src"].values()),
            dst=Pitched(self.device, *pitches["dst"].values()),
            extent=Extent(fields["width"], fields["height"], fields["depth"]),
            kind=DEVICE_TO_DEVICE,
            **places,
        )

    def enqueue(self, name: str, asynchronous: bool, *arguments) -> str:
        return self.sdk(f"{name}Async", *arguments, None) if asynchronous else self.sdk(name, *arguments)

    def fill_3d(self, asynchronous: bool, width, height, depth, pitch, ysize) -> str:
        return self.enqueue(
            "Memset3D",
            asynchronous,
            Pitched(self.device, pitch, ROW, ysize),
            7,
            Extent(width, height, depth),
        )

    def plane(self, asynchronous: bool, **fields: int) -> str:
        usual = {"src_pitch": PITCH, "dst_pitch": PITCH, "width": ROW, "height": ROWS}
        box = Plane(src_type=2, dst_type=2, src_device=self.other, dst_device=self.device)
        return self._drive("Memcpy2D", box, asynchronous, {**usual, **fields})

    def box(self, asynchronous: bool, **fields: int) -> str:
        usual = {"src_pitch": PITCH, "dst_pitch": PITCH, "width": ROW, "height": ROWS, "depth": SLICES}
        usual |= {"src_rows": ROWS, "dst_rows": ROWS}
        box = Box(src_type=2, dst_type=2, src_device=self.other, dst_device=self.device)
        return self._drive("Memcpy3D", box, asynchronous, {**usual, **fields})

    def _drive(self, name: str, box, asynchronous: bool, fields: dict[str, int]) -> str:
        for field, value in fields.items():
            setattr(box, field, value & (WRAP - 1))
        if asynchronous:
            return self.driver(f"{name}Async", byref(box), None)
        return self.driver(name, byref(box))

    def physical_memory(self, size: int) -> str:
        handle = ctypes.c_ulonglong()
        status = self.driver("MemCreate", byref(handle), size, byref(self.physical), 0)
        if status == "Success":
            assert self.driver("MemRelease", handle) == "Success"
        return status

    def mapped(self, name: str, size: int) -> str:
        """Calls one of the functions for a mapping of RESERVED bytes with another size, then removes it."""
        address, handle = c_size_t(), ctypes.c_ulonglong()
        access = Access(1, 0, 3)
        assert self.driver("MemAddressReserve", byref(address), 2 * RESERVED, 0, 0, 0) == "Success"
        assert self.driver("MemCreate", byref(handle), RESERVED, byref(self.physical), 0) == "Success"
        try:
            if name == "MemMap":
                status = self.driver("MemMap", address, size, 0, handle, 0)
                if status != "Success":
                    assert self.driver("MemMap", address, RESERVED, 0, handle, 0) == "Success"
                return status
            assert self.driver("MemMap", address, RESERVED, 0, handle, 0) == "Success"
            if name == "MemSetAccess":
                return self.driver("MemSetAccess", address, size, byref(access), 1)
            status = self.driver(name, address, size)
            if name == "MemUnmap" and status == "Success":
                assert self.driver("MemMap", address, RESERVED, 0, handle, 0) == "Success"
            return status
        finally:
            assert self.driver("MemUnmap", address, RESERVED) == "Success"
            assert self.driver("MemRelease", handle) == "Success"
            assert self.driver("MemAddressFree", address, 2 * RESERVED) == "Success"

    def reserved(self, size: int) -> str:
        address = c_size_t()
        status = self.driver("MemAddressReserve", byref(address), size, 0, 0, 0)
        if status == "Success":
            assert self.driver("MemAddressFree", address, size) == "Success"
        return status

    def node(self, name: str, *arguments) -> str:
        return self.sdk(name, byref(c_void_p()), self.graph, None, 0, *arguments)

    def memset_node(self, **fields: int) -> str:
        usual = {"pitch": PITCH, "width": ROW, "height": ROWS} | fields
        parameters = Memset(self.device, usual["pitch"], 1, 1, usual["width"], usual["height"])
        return self.node("GraphAddMemsetNode", byref(parameters))

    def rows(self) -> Iterator[tuple[str, Callable[[int], str], int, list[int]]]:
        """Yields (function and parameter, the call with that parameter, its usual value, sizes to refuse)."""
        sdk = self.sdk
        host, device, other, array = self.host, self.device, self.other, self.array
        for name in ("Malloc", "MallocHost"):
            sizes = SIZES if name == "Malloc" else BEYOND
            release = "Free" if name == "Malloc" else "FreeHost"
            yield name, lambda n, name=name, release=release: self.new(name, n, release=release), PAGE, sizes
        yield "HostAlloc", lambda n: self.new("HostAlloc", n, 0, release="FreeHost"), PAGE, BEYOND
        yield "MallocManaged", lambda n: self.new("MallocManaged", n, 1), PAGE, BEYOND
        yield "HostRegister", self.registered, PAGE, BEYOND
        yield "MallocAsync", lambda n: self.new("MallocAsync", n, None), PAGE, SIZES
        yield "MallocPitch width", lambda n: self.pitched(n, ROWS), ROW, SIZES
        yield "MallocPitch height", lambda n: self.pitched(ROW, n), ROWS, SIZES
        for at, name in enumerate(("width", "height", "depth")):
            for call in (self.cube, self.array_3d):
                usual = (ROW, ROWS, SLICES)
                row = lambda n, at=at, call=call, usual=usual: call(*usual[:at], n, *usual[at + 1 :])  # noqa: E731
                yield f"{call.__name__} {name}", row, usual[at], SIZES
        fresh = lambda w, h: self.new(  # noqa: E731
            "MallocArray", byref(self.format), w, h, 0, release="FreeArray"
        )
        yield "MallocArray width", lambda n: fresh(n, ROWS), ROW, SIZES
        yield "MallocArray height", lambda n: fresh(ROW, n), ROWS, SIZES
        yield "MemAdvise", lambda n: sdk("MemAdvise", self.managed, n, 1, 0), PAGE, SIZES
        yield "MemPrefetchAsync", lambda n: sdk("MemPrefetchAsync", self.managed, n, 0, None), PAGE, SIZES

        for asynchronous in (False, True):
            tail = "Async" if asynchronous else ""
            call = lambda name, *a, asynchronous=asynchronous: self.enqueue(name, asynchronous, *a)  # noqa: E731
            for dst, src, kind in (
                (device, host, HOST_TO_DEVICE),
                (host, device, DEVICE_TO_HOST),
                (device, other, DEVICE_TO_DEVICE),
            ):
                copy = lambda n, dst=dst, src=src, kind=kind, call=call: call("Memcpy", dst, src, n, kind)  # noqa: E731
                yield f"Memcpy{tail} kind {kind}", copy, PAGE, SIZES
                plane = lambda w, h, dp=PITCH, sp=PITCH, dst=dst, src=src, kind=kind, call=call: call(  # noqa: E731
                    "Memcpy2D", dst, dp, src, sp, w, h, kind
                )
                name = f"Memcpy2D{tail} kind {kind}"
                yield f"{name} width", lambda n, plane=plane: plane(n, ROWS), ROW, SIZES
                yield f"{name} height", lambda n, plane=plane: plane(ROW, n), ROWS, SIZES
                for side in ("dp", "sp"):
                    beyond = BEYOND if (side == "dp") == (kind == DEVICE_TO_HOST) else SIZES
                    if kind == DEVICE_TO_DEVICE:
                        beyond = SIZES
                    yield (
                        f"{name} {side}",
                        lambda n, plane=plane, side=side: plane(ROW, ROWS, **{side: n}),
                        PITCH,
                        beyond,
                    )
                square = lambda n, plane=plane: plane(n, ROWS, n, n)  # noqa: E731
                yield f"{name} width and pitches", square, ROW, SIZES
            yield (
                f"MemcpyPeer{tail}",
                lambda n, call=call: call("MemcpyPeer", device, 0, other, 0, n),
                PAGE,
                SIZES,
            )
            yield f"Memset{tail}", lambda n, call=call: call("Memset", device, 1, n), PAGE, SIZES
            for at, (name, usual) in enumerate((("pitch", PITCH), ("width", ROW), ("height", ROWS))):
                values = [PITCH, 1, ROW, ROWS]
                place = (0, 2, 3)[at]
                fill = (
                    lambda n, place=place, values=values, call=call: call(  # noqa: E731
                        "Memset2D", device, *values[:place], n, *values[place + 1 :]
                    )
                )
                yield f"Memset2D{tail} {name}", fill, usual, SIZES
            for name, usual in (
                ("width", ROW),
                ("height", ROWS),
                ("depth", SLICES),
                ("pitch", PITCH),
                ("ysize", ROWS),
            ):
                base = {"width": ROW, "height": ROWS, "depth": SLICES, "pitch": PITCH, "ysize": ROWS}
                yield (
                    f"Memset3D{tail} {name}",
                    lambda n, name=name, base=base, a=asynchronous: self.fill_3d(a, **(base | {name: n})),
                    usual,
                    SIZES,
                )
                if name not in ("pitch", "ysize"):
                    yield (
                        f"Memcpy3D{tail} {name}",
                        lambda n, name=name, base=base, a=asynchronous: self.copy_3d(
                            a, **({"width": ROW, "height": ROWS, "depth": SLICES} | {name: n})
                        ),
                        usual,
                        SIZES,
                    )
            for side in ("src", "dst"):
                for field, usual in (("x", 0), ("y", 0), ("z", 0), ("pitch", PITCH), ("ysize", ROWS)):
                    yield (
                        f"Memcpy3D{tail} {side}_{field}",
                        lambda n, key=f"{side}_{field}", a=asynchronous: self.copy_3d(
                            a, width=ROW, height=ROWS, depth=SLICES, **{key: n}
                        ),
                        usual,
                        SIZES,
                    )
                for field, usual in (("x", 0), ("y", 0), ("pitch", PITCH)):
                    key = f"{side}_{field}"
                    plane = lambda n, key=key, a=asynchronous: self.plane(a, **{key: n})  # noqa: E731
                    yield f"muMemcpy2D{tail} {key}", plane, usual, SIZES
                for field, usual in (("x", 0), ("y", 0), ("z", 0), ("pitch", PITCH), ("rows", ROWS)):
                    key = f"{side}_{field}"
                    box = lambda n, key=key, a=asynchronous: self.box(a, **{key: n})  # noqa: E731
                    yield f"muMemcpy3D{tail} {key}", box, usual, SIZES
            for field, usual in (("width", ROW), ("height", ROWS), ("depth", SLICES)):
                if field != "depth":
                    plane = lambda n, field=field, a=asynchronous: self.plane(a, **{field: n})  # noqa: E731
                    yield f"muMemcpy2D{tail} {field}", plane, usual, SIZES
                box = lambda n, field=field, a=asynchronous: self.box(a, **{field: n})  # noqa: E731
                yield f"muMemcpy3D{tail} {field}", box, usual, SIZES
            for at, (name, usual) in enumerate((("x", 0), ("y", 0), ("width", ROW), ("height", ROWS))):
                values = [0, 0, ROW, ROWS]
                into = (
                    lambda n, at=at, values=values, call=call: call(  # noqa: E731
                        "Memcpy2DToArray",
                        array,
                        *(values[:at] + [n] + values[at + 1 :])[:2],
                        device,
                        PITCH,
                        *(values[:at] + [n] + values[at + 1 :])[2:],
                        DEVICE_TO_DEVICE,
                    )
                )
                yield f"Memcpy2DToArray{tail} {name}", into, usual, SIZES
                out = (
                    lambda n, at=at, values=values, call=call: call(  # noqa: E731
                        "Memcpy2DFromArray",
                        device,
                        PITCH,
                        array,
                        *(values[:at] + [n] + values[at + 1 :]),
                        DEVICE_TO_DEVICE,
                    )
                )
                yield f"Memcpy2DFromArray{tail} {name}", out, usual, SIZES
            for name in ("bytes", "offset"):
                pick = lambda n, name=name: (n, 0) if name == "bytes" else (PAGE, n)  # noqa: E731
                usual = PAGE if name == "bytes" else 0
                yield (
                    f"MemcpyToSymbol{tail} {name}",
                    lambda n, pick=pick, call=call: call(
                        "MemcpyToSymbol", self.symbol, host, *pick(n), HOST_TO_DEVICE
                    ),
                    usual,
                    SIZES,
                )
                yield (
                    f"MemcpyFromSymbol{tail} {name}",
                    lambda n, pick=pick, call=call: call(
                        "MemcpyFromSymbol", host, self.symbol, *pick(n), DEVICE_TO_HOST
                    ),
                    usual,
                    SIZES,
                )
            stream = (None,) if asynchronous else ()
            for name, operands in (
                ("HtoD", (device, host)),
                ("DtoH", (host, device)),
                ("DtoD", (device, other)),
            ):
                yield (
                    f"muMemcpy{name}{tail}",
                    lambda n, name=f"Memcpy{name}{tail}", operands=operands, stream=stream: self.driver(
                        name, *operands, n, *stream
                    ),
                    PAGE,
                    SIZES,
                )
            for element in ("D8", "D32"):
                yield (
                    f"muMemset{element}{tail}",
                    lambda n, name=f"Memset{element}{tail}", stream=stream: self.driver(
                        name, device, 1, n, *stream
                    ),
                    ROW,
                    SIZES,
                )
        for name, at in (("bytes", 2), ("x", 0), ("y", 1)):
            values = [0, 0, ROW]
            place = lambda n, at=at, values=values: values[:at] + [n] + values[at + 1 :]  # noqa: E731
            yield (
                f"MemcpyToArray {name}",
                lambda n, place=place: sdk(
                    "MemcpyToArray", array, *place(n)[:2], device, place(n)[2], DEVICE_TO_DEVICE
                ),
                values[at],
                SIZES,
            )
            yield (
                f"MemcpyFromArray {name}",
                lambda n, place=place: sdk("MemcpyFromArray", device, array, *place(n), DEVICE_TO_DEVICE),
                values[at],
                SIZES,
            )
        second = sdk.make("MallocArray", byref(self.format), PITCH, ROWS, 0)
        for at, usual in enumerate((0, 0, 0, 0, ROW, ROWS)):
            values = [0, 0, 0, 0, ROW, ROWS]
            place = lambda n, at=at, values=values: values[:at] + [n] + values[at + 1 :]  # noqa: E731
            yield (
                f"Memcpy2DArrayToArray {at}",
                lambda n, place=place: sdk(
                    "Memcpy2DArrayToArray",
                    second,
                    *place(n)[:2],
                    array,
                    *place(n)[2:],
                    DEVICE_TO_DEVICE,
                ),
                usual,
                SIZES,
            )
        yield (
            "GraphAddMemcpyNode1D",
            lambda n: self.node("GraphAddMemcpyNode1D", device, other, n, DEVICE_TO_DEVICE),
            PAGE,
            SIZES,
        )
        for name, usual in (("width", ROW), ("height", ROWS), ("pitch", PITCH)):
            yield (
                f"GraphAddMemsetNode {name}",
                lambda n, name=name: self.memset_node(**{name: n}),
                usual,
                SIZES,
            )
        for name, usual in (("width", ROW), ("height", ROWS), ("depth", SLICES)):
            yield (
                f"GraphAddMemcpyNode {name}",
                lambda n, name=name: self.node(
                    "GraphAddMemcpyNode",
                    byref(
                        self.parameters_3d(**({"width": ROW, "height": ROWS, "depth": SLICES} | {name: n}))
                    ),
                ),
                usual,
                SIZES,
            )
        yield "muMemAlloc", self.driver_memory, PAGE, SIZES
        yield "muMemAllocPitch width", lambda n: self.driver_pitched(n, ROWS), ROW, SIZES
        yield "muMemAllocPitch height", lambda n: self.driver_pitched(ROW, n), ROWS, SIZES
        yield (
            "muMemCreate",
            self.physical_memory,
            RESERVED,
            SIZES + [n // RESERVED * RESERVED for n in BEYOND],
        )
        yield "muMemAddressReserve", self.reserved, RESERVED, [n // RESERVED * RESERVED for n in BEYOND]
        for name in ("MemMap", "MemSetAccess", "MemUnmap"):
            yield (
                f"mu{name}",
                lambda n, name=name: self.mapped(name, n),
                RESERVED,
                SIZES + [n // RESERVED * RESERVED for n in SIZES],
            )

    def driver_memory(self, size: int) -> str:
        address = c_size_t()
        status = self.driver("MemAlloc", byref(address), size)
        if status == "Success":
            assert self.driver("MemFree", address) == "Success"
        return status

    def driver_pitched(self, width: int, height: int) -> str:
        address = c_size_t()
        status = self.driver("MemAllocPitch", byref(address), byref(c_size_t()), width, height, 4)
        if status == "Success":
            assert self.driver("MemFree", address) == "Success"
        return status


def main() -> None:
    sdk = Sdk(*sys.argv[1:3])
    calls = Calls(sdk)
    rows = list(calls.rows())
    sdk.must("DeviceSynchronize")
    used = sdk.runtime.musaEmulatorLiveAllocations(0)
    accepted, refused, count = [], [], 0
    for name, call, usual, sizes in rows:
        if call(usual) != "Success":
            refused.append(f"{name}({usual}): {call(usual)}")
        for size in sizes:
            count += 1
            status = call(size)
            if status == "Success":
                accepted.append(f"{name}({size:#x})")
    sdk.must("DeviceSynchronize")
    left = sdk.runtime.musaEmulatorLiveAllocations(0) - used
    print(
        json.dumps(
            {"rows": len(rows), "calls": count, "accepted": accepted, "refused": refused, "left": left}
        )
    )


if __name__ == "__main__":
    main()
