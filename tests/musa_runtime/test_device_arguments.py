# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every function of the extension that takes a device index refuses an int that is none, instead of narrowing
it to another device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

SOURCES = Path(__file__).parents[2] / "packages/musa-runtime/csrc/python"
# 8 bits hold the first two as 0 and 127; the last two do not fit into 32 and 64 bits.
WRONG = (256, -129, 128, 1 << 31, 1 << 40, 1 << 64)

_VALUES = {
    "int": 0,
    "typing.SupportsInt": 0,
    "SupportsInt": 0,
    "float": 0.5,
    "bool": False,
    "str": "",
    "bytes": b"",
}


def value_of(annotation):
    """Returns a value that pybind11 accepts for a parameter of this type."""
    annotation = annotation.split("|")[0].strip()
    if annotation in _VALUES:
        return _VALUES[annotation]
    if "Optional" in annotation:
        return None
    if annotation.lower().startswith(("tuple", "typing.tuple")):
        return (0, 1)
    if "list" in annotation.lower() or "Sequence" in annotation:
        return []
    if "float" in annotation.lower():
        return 0.5
    return 0


def parameters_of(function):
    """Returns the types of the parameters, from the signature that pybind11 writes."""
    [text] = re.findall(r"^\w+\((.*)\) ->", function.__doc__, flags=re.MULTILINE)
    parts = re.split(r", (?=\w+: )", text)
    return [part.split(": ", 1)[1].split(" = ")[0] for part in parts if ": " in part]


def takers(native):
    """Yields (name, callable, parameter types) of each function and method that takes a device index."""
    for name, value in sorted(vars(native).items()):
        if callable(value) and not isinstance(value, type) and "DeviceIndex" in (value.__doc__ or ""):
            yield name, value, parameters_of(value)
    for name, value in sorted(vars(native._musart).items()):
        if callable(value) and not isinstance(value, type) and "DeviceIndex" in (value.__doc__ or ""):
            yield f"_musart.{name}", value, parameters_of(value)
    for name in dir(native._InterprocessEvent):
        method = getattr(native._InterprocessEvent, name)
        if "DeviceIndex" in (method.__doc__ or ""):
            bound = getattr(native._InterprocessEvent(False), name)
            types = [each for each in parameters_of(method) if "_InterprocessEvent" not in each]
            yield f"_InterprocessEvent.{name}", bound, types


@pytest.fixture
def native(musa):
    import musa_runtime._C as native

    return native


def test_an_index_that_names_no_device_is_refused(musa, native):
    before = musa.current_device()
    refused = []
    for name, function, types in takers(native):
        places = [place for place, each in enumerate(types) if each == "DeviceIndex"]
        for place in places:
            for wrong in WRONG:
                values = [0 if each == "DeviceIndex" else value_of(each) for each in types]
                values[place] = wrong
                with pytest.raises(
                    RuntimeError, match=rf"Invalid device musa:{wrong}: this process sees \d+"
                ):
                    function(*values)
                    pytest.fail(f"{name}{tuple(values)} was accepted")
        refused.append(name)
    assert {"set_device", "current_stream", "_InterprocessEvent.record", "_musart.musaMemGetInfo"} <= set(
        refused
    )
    assert len(refused) >= 30, refused
    assert musa.current_device() == before


def test_an_index_beyond_the_devices_is_refused(musa, native):
    count = musa.device_count()
    for name in (
        "set_device",
        "exchange_device",
        "current_stream",
        "default_stream",
        "get_device_properties",
    ):
        for wrong in (count, 64, 127):
            with pytest.raises(RuntimeError, match=f"Invalid device musa:{wrong}"):
                getattr(native, name)(wrong)
    with pytest.raises(RuntimeError, match="Invalid device musa:127"):
        native.stream_native_handle(1, 127)


def test_a_python_function_refuses_it_too(musa):
    for function in (musa.set_device, musa.synchronize, musa.current_stream, musa.mem_get_info):
        for wrong in WRONG:
            if wrong > 0:  # a negative index is the current device
                with pytest.raises((RuntimeError, ValueError), match=r"out of range|Invalid device"):
                    function(wrong)
    assert torch.musa.current_device() == 0


def test_every_binding_uses_the_converter():
    narrowing = re.compile(r"static_cast<(?:c10::)?DeviceIndex>|\b(?:int|DeviceIndex) (?:device|peer)\b")
    assert narrowing.search("[](int device) {"), "the pattern finds a binding without the converter"
    found = {
        f"{path.name}: {line.strip()}"
        for path in SOURCES.glob("*.cpp")
        for line in path.read_text(encoding="utf-8").splitlines()
        if narrowing.search(line)
    }
    assert not found


_CHECKED_VARIABLE = re.compile(r"C10_MUSA_CHECK(?:_WARN)?\((?!EXPR\b)\w+\)")


def test_a_failed_call_is_named_by_its_expression():
    assert _CHECKED_VARIABLE.search("C10_MUSA_CHECK(error);"), "the pattern finds a variable"
    packages = SOURCES.parents[2]
    found = [
        f"{path.relative_to(packages)}:{number}"
        for folder in packages.glob("*/csrc")
        for path in folder.rglob("*")
        if path.suffix in (".cpp", ".h", ".mu", ".muh")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _CHECKED_VARIABLE.search(line)
    ]
    assert not found, 'throw_musa_error(error, "musaCall(arguments)", ...) names the call'


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("call", "work"),
    [
        ("musaEventQuery", lambda: torch.musa.Event().query),
        ("musaStreamQuery", lambda: torch.musa.Stream().query),
        # Larger than a block that another test has left in the cache of page-locked memory.
        ("musaHostAlloc", lambda: lambda: torch.empty(1 << 28, pin_memory=True)),
        ("musaPointerGetAttributes", lambda: torch.empty(4, pin_memory=True).is_pinned),
    ],
)
def test_the_message_of_a_failed_call_names_it(musa, emulator, call, work):
    event = work()
    owner = getattr(event, "__self__", None)
    if isinstance(owner, torch.Event):
        owner.record()
    emulator.fail_next(call, 999)
    with pytest.raises(RuntimeError, match=f"The call that failed: {call}\\("):
        event()
