# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""No operator writes outside its out= argument, whatever its dtype, shape and strides."""

from __future__ import annotations

import pytest
import torch

from tests.conformance import guarded
from tests.conformance.comparison import Mismatch
from tests.conformance.guarded import Call, Guarded, Kind
from tests.conformance.orders import ORDERS, order


@pytest.mark.parametrize("name", ORDERS)
def test_only_the_elements_of_out_are_written(name: str, device: str, full: bool) -> None:
    wrong, judged = [], set()
    with order(name):
        for call in guarded.calls(full):
            judged.add(call.name)
            wrong += guarded.judge(call, guarded.KINDS, device)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
    assert len(judged) > (400 if full else 150)


@pytest.mark.parametrize("out", [torch.float32, torch.int8], ids=str)
@pytest.mark.parametrize("of", [torch.int64, torch.complex128], ids=str)
def test_elements_of_another_size_are_not_moved(of: torch.dtype, out: torch.dtype, device: str) -> None:
    image = torch.ones(2, 3, 4, 5, dtype=of, device=device)
    calls = {
        "im2col.out": lambda x, to: torch.ops.aten.im2col.out(x, [2, 2], [1, 1], [0, 0], [1, 1], out=to),
        "reflection_pad2d.out": lambda x, to: torch.ops.aten.reflection_pad2d.out(x, [1, 1, 1, 1], out=to),
        "replication_pad2d.out": lambda x, to: torch.ops.aten.replication_pad2d.out(x, [1, 1, 1, 1], out=to),
        "index_select.out": lambda x, to: torch.index_select(x, 3, torch.arange(5, device=device), out=to),
    }
    for name, call in calls.items():
        with order("ported"):
            guard = Guarded(torch.ones(2, 12, 12, dtype=of), Kind("another dtype", out), device)
            with pytest.raises(RuntimeError):
                call(image, guard.tensor)
            assert not guard.written_outside(), name


def test_a_byte_outside_is_noticed(device: str) -> None:
    for kind in guarded.LAYOUTS:
        guard = Guarded(torch.ones(3, 4), kind, device)
        guard.tensor.fill_(1)
        assert not guard.written_outside()
        first = guard.tensor.storage_offset()
        torch.as_strided(guard.tensor, (1,), (1,), first - 1).fill_(1)
        assert guard.written_outside() == {-4, -3, -2, -1}


def test_a_kernel_that_writes_past_the_end_is_reported(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(3, 4)
    call = Call("neg.out", "neg", [x], {})
    assert not list(guarded.judge(call, guarded.LAYOUTS[:1], device))

    def careless(call: Call, outs: list[str], there: list[Guarded], on: str) -> guarded.Outcome:
        if on == device:
            torch.as_strided(there[0].tensor, (13,), (1,)).fill_(-1)
        else:
            there[0].tensor.fill_(-1)
        return guarded.Outcome(value=there[0].tensor)

    monkeypatch.setattr(guarded, "_run", careless)
    assert "4 bytes outside out= were written: 48 to 51" in next(
        guarded.judge(call, guarded.LAYOUTS[:1], device)
    )
    with pytest.raises(Mismatch):
        guarded._judge(call, ["out"], [-x], [guarded.LAYOUTS[0]], device)
