# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Copies follow the order of both devices' current streams, whichever stream the host waits for first."""

from __future__ import annotations

import contextlib
import itertools

import pytest
import torch

from tests.harness.subprocesses import run_code

ARRANGEMENTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "with gaps": lambda x: x[1:, ::2],
}
# The forms of the target and the source, and whether their dtypes differ.
FORMS = [
    ("contiguous", "contiguous", False),
    ("contiguous", "contiguous", True),
    ("transposed", "transposed", False),
    ("contiguous", "transposed", False),
    ("with gaps", "with gaps", False),
]
PLACES = ("cpu", "pinned", "musa:0", "musa:1")
# The values of the target and the source in the course of a case.
OLD, NEW, COPIED_TOO_EARLY, COPIED, COPIED_TOO_LATE = range(2, 7)


def _filled(place, value, dtype=torch.float32):
    filled = torch.full((8, 8), value, dtype=dtype, pin_memory=place == "pinned")
    return filled if place in ("cpu", "pinned") else filled.to(place)


class Case:
    """A copy with work before and after it on its source and its target.

    The work consists of copies within one device, which the SDK queues without a wait of the host.
    """

    def __init__(self, source: str, target: str, form: tuple[str, str, bool]) -> None:
        """Allocates all memory of a case on two places."""
        target_form, source_form, converts = form
        dtype = torch.float64 if converts else torch.float32
        self.source_place, self.target_place = source, target
        self.from_host, self.to_host = source in ("cpu", "pinned"), target in ("cpu", "pinned")
        self.source = _filled(source, COPIED_TOO_EARLY)
        self.target = _filled(target, OLD, dtype)
        self.before, self.after = self.target.clone(), self.target.clone()
        self.source_values = {value: _filled(source, value) for value in range(2, 7)}
        self.target_values = {value: _filled(target, value, dtype) for value in range(2, 7)}
        self.source_view = ARRANGEMENTS[source_form](self.source)
        self.arrange_target = ARRANGEMENTS[target_form]

    def wrong(self, pending: str, non_blocking: bool, side: bool, first: int) -> list[str]:
        """What does not follow the order of the streams, of work that is queued again.

        `pending` work on the target's device reads or writes the target. The host waits for the current
        stream of the `first` device, then for the other one.
        """
        musa = torch.musa
        self.source.copy_(self.source_values[COPIED_TOO_EARLY])
        self.target.copy_(self.target_values[OLD])
        for device in (0, 1):
            musa.synchronize(device)
        with contextlib.ExitStack() as streams:
            if side:
                for device in (1 - first, first):
                    streams.enter_context(musa.stream(musa.Stream(device)))
            # The host's memory is written immediately, so work on it is not pending.
            self.source.copy_(self.source_values[COPIED])
            if not self.to_host and pending == "reads":
                self.before.copy_(self.target)
            elif not self.to_host:
                self.target.copy_(self.target_values[NEW])
            self.arrange_target(self.target).copy_(self.source_view, non_blocking=non_blocking)
            waits = self.to_host and non_blocking
            host_read = None if waits or not self.to_host else self.target.clone()
            if not (self.source_place == "pinned" and non_blocking):
                self.source.copy_(self.source_values[COPIED_TOO_LATE])
            if not self.to_host:
                self.after.copy_(self.target)
                self.target.copy_(self.target_values[NEW])
            for device in (first, 1 - first):
                musa.current_stream(device).synchronize()
            if waits:
                host_read = self.target.clone()
            after = self.after if host_read is None else host_read
            found = {"copied value": self.arrange_target(after.cpu()).unique().tolist() == [COPIED]}
            if not self.to_host:
                found["later write of the target"] = self.target.cpu().eq(NEW).all().item()
                if pending == "reads":
                    found["earlier read of the target"] = self.before.cpu().eq(OLD).all().item()
        return [name for name, right in found.items() if not right]


def all_cases():
    for source, target, form in itertools.product(PLACES, PLACES, FORMS):
        if "musa" in source + target:
            yield Case(source, target, form), f"{source} to {target}, {form}"


def misordered() -> list[str]:
    """The cases that do not follow the order of streams."""
    found = []
    for case, name in all_cases():
        for options in itertools.product(("reads", "writes"), (False, True), (False, True), (0, 1)):
            wrong = case.wrong(*options)
            if wrong:
                found.append(f"{name}, {options}: {', '.join(wrong)}")
    return found


def never_pending() -> list[str]:
    """Pairs of places whose contiguous copies ran before the host waited; of the others, the order counts."""
    from tests.harness.emulator import emulator_or_skip

    emulator = emulator_or_skip()
    found = []
    for source, target in itertools.product(("pinned", "musa:0", "musa:1"), repeat=2):
        if "musa" in source + target:
            copied, read = _filled(target, 0), _filled(source, 1)
            for device in (0, 1):
                torch.musa.synchronize(device)
            before = emulator.pending_operations()
            copied.copy_(read, non_blocking=True)
            if emulator.pending_operations() == before:
                found.append(f"{source} to {target}")
    return found


def found_in_lazy_mode(*names: str, **environment: str) -> str:
    """The output of functions of this file in a process that runs work as late as its waits permit, so that a
    missing order shows in every run."""
    calls = ", ".join(f"*test_copy_order.{name}()" for name in names)
    code = f"""
        import torch
        from tests.musa_runtime import test_copy_order
        torch.musa.init()
        print({calls}, sep="\\n")
    """
    return run_code(code, MUSA_EMULATOR_MODE="lazy", **environment).strip()


@pytest.mark.once
def test_copies_follow_the_order_of_the_streams(emulator, two_devices):
    environment = {"MUSA_EMULATOR_MEMORY": "", "TORCH_MUSA_FALLBACK": "allow"}
    assert found_in_lazy_mode("never_pending", "misordered", **environment) == ""


def reused_too_early() -> list[str]:
    """Kinds of copies that read or write pinned memory which another tensor has got meanwhile."""
    found = []
    for device, part in itertools.product(("musa:0", "musa:1"), (slice(None), slice(100, 200))):
        sent, kept = [], []
        for value in range(20):
            sent.append(torch.full((1000,), float(value)).pin_memory()[part].to(device, non_blocking=True))
        for value in range(20):
            torch.empty(1000, pin_memory=True)[part].copy_(sent[0], non_blocking=True)
            kept.append(torch.empty(1000, pin_memory=True).fill_(value))
        torch.musa.synchronize(device)
        if not all(each.cpu().eq(value).all() for value, each in enumerate(sent)):
            found.append(f"to {device}, {part}")
        if not all(each.eq(value).all() for value, each in enumerate(kept)):
            found.append(f"from {device}, {part}")
    return found


@pytest.mark.once
def test_pinned_memory_is_not_reused_before_its_copies_have_run(emulator, two_devices):
    assert found_in_lazy_mode("reused_too_early") == ""
