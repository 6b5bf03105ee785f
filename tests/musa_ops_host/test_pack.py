# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack musa-ops-host, and the runtime without it."""

from __future__ import annotations

import json

import pytest

from tests.harness.subprocesses import run_code, run_forked

# Every interpreter of these tests chooses its packs.
pytestmark = [pytest.mark.once, pytest.mark.emulator]

SETTINGS = {"TORCH_MUSA_OPS": None, "TORCH_MUSA_FALLBACK": None, "MUSA_EMULATOR_MEMORY": "shared"}
ABSENT = {**SETTINGS, "TORCH_MUSA_DISABLE_PACKS": "host"}
ALONE = "amp,as_cuda,compat,compile,distributed,mudnn,ported,vision"

_CALLS = """
import collections, json, warnings, torch
import torch.nn.functional as F

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.manual_seed(0)
    image = torch.rand(2, 3, 8, 8, device="musa", requires_grad=True)
    weight = torch.rand(4, 3, 3, 3, device="musa", requires_grad=True)
    result = (F.conv2d(image, weight).sigmoid() * 0.9).erfinv().logcumsumexp(0).sum()
    result.backward()
    network = torch.nn.LSTM(3, 5).to("musa")
    output, _ = network(torch.rand(7, 2, 3, device="musa"))
    output.sum().backward()
    numbers = [image.grad.double().sum(), weight.grad.double().sum(), output.double().sum(),
               network.weight_hh_l0.grad.double().sum()]
print(json.dumps({
    "numbers": [float(number) for number in numbers],
    "first": collections.Counter(row["provider"] for row in torch.musa.ops.table()),
    "copied": sorted(row["op"] for row in torch.musa.ops.fallback_report()),
    "warned": sum("'host-copy'" in str(each.message) for each in caught),
    }))
"""


def described(**environment):
    return json.loads(run_code(_CALLS, **environment))


def test_without_it_the_same_values_are_computed_on_copies():
    present = described(**SETTINGS, TORCH_MUSA_DISABLE_PACKS=ALONE)
    absent = described(**SETTINGS, TORCH_MUSA_DISABLE_PACKS=f"{ALONE},host")
    assert present["numbers"] == pytest.approx(absent["numbers"], rel=1e-5)
    assert present["first"]["host"] > 1000 and not present["copied"] and not present["warned"]
    assert "host" not in absent["first"]
    assert "aten::erfinv.out" in absent["copied"] and absent["warned"] == len(absent["copied"])


@pytest.mark.parametrize(
    ("memory", "cause"), [("shared", "the pack is not loaded"), ("strict", "the host cannot address")]
)
def test_an_operator_pinned_to_it_needs_the_pack_and_the_memory(memory, cause):
    settings = {**ABSENT, "MUSA_EMULATOR_MEMORY": memory, "TORCH_MUSA_OPS": "aten::erfinv=host"}
    done = run_forked("import torch; torch.ones(2, device='musa')", **settings)
    assert done.returncode == 1
    assert "musa-ops-host" in done.stderr and cause in done.stderr and "Fix: use 'host-copy'" in done.stderr


_CAPTURE = """
import torch

x = torch.full((4,), 0.5, device="musa")
graph = torch.musa.MUSAGraph()
try:
    with torch.musa.graph(graph):
        y = torch.special.erfinv(x)
except (NotImplementedError, RuntimeError) as error:
    print("refused", "aten::erfinv" in str(error) and "'host-copy'" in str(error))
else:
    x.fill_(0.25)
    graph.replay()
    print(torch.equal(y, torch.special.erfinv(x)))
z = torch.special.erfinv(x)  # the device works after a refused capture
print(z.shape)
"""


def test_its_calls_are_recorded_and_copies_are_refused():
    packs = "amp,mudnn,ported"
    assert run_code(_CAPTURE, **SETTINGS, TORCH_MUSA_DISABLE_PACKS=packs).split() == [
        "True",
        "torch.Size([4])",
    ]
    without = run_code(
        _CAPTURE, **{**SETTINGS, "TORCH_MUSA_FALLBACK": "allow"}, TORCH_MUSA_DISABLE_PACKS=f"{packs},host"
    )
    assert without.split("\n")[:1] == ["refused True"] and "torch.Size([4])" in without


_QUANTIZED = """
import warnings, torch

warnings.simplefilter("ignore")
q = torch.quantize_per_tensor(torch.zeros(2, 3), 0.1, 5, torch.qint8).to("musa")
q[0].copy_(torch.quantize_per_tensor(torch.ones(3), 0.1, 5, torch.qint8).to("musa"))
q[1, 1:].copy_(torch.tensor([0.2, 0.3], device="musa"))
print(q.int_repr().tolist())
"""


@pytest.mark.parametrize("memory", ["shared", "strict"])
@pytest.mark.parametrize("packs", ["", "host"])
def test_a_view_of_a_quantized_tensor_is_written_in_place(memory, packs):
    settings = {**SETTINGS, "MUSA_EMULATOR_MEMORY": memory, "TORCH_MUSA_DISABLE_PACKS": packs}
    assert run_code(_QUANTIZED, **settings).strip() == "[[15, 15, 15], [5, 7, 8]]"
