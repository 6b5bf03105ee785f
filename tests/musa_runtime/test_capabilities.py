# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The decisions of the runtime follow capabilities of the device: on a board (discrete) and on a system on a
chip (soc), which reports `integrated`, kernels of the device compute, and the host waits only if the program
asks."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.harness.subprocesses import run_code

# Every interpreter of these tests sets its own memory mode.
pytestmark = [pytest.mark.once, pytest.mark.emulator]

PROFILES = {"emulator": "shared", "discrete": "strict", "soc": "soc"}
SETTINGS = {"TORCH_MUSA_OPS": None, "TORCH_MUSA_DISABLE_PACKS": None, "TORCH_MUSA_FALLBACK": "allow"}

_DESCRIBE = """
import collections, json, torch
from musa_runtime.capabilities import computes_on_host, host_addressable

torch.musa.init()
first = collections.Counter(row["provider"] for row in torch.musa.ops.table())
print(json.dumps({
    "integrated": torch.musa.get_device_properties().is_integrated,
    "host_addressable": host_addressable(),
    "computes_on_host": computes_on_host(),
    "multithreaded backward": torch.autograd.is_multithreading_enabled(),
    "first": first,
}))
"""


def describe(**environment):
    return json.loads(run_code(_DESCRIBE, **{**SETTINGS, **environment}))


@pytest.mark.parametrize("profile", PROFILES)
def test_the_profile_of_the_device(musa, profile):
    found = describe(MUSA_EMULATOR_MEMORY=PROFILES[profile])
    assert found["integrated"] == (profile != "discrete")
    assert found["host_addressable"] == found["computes_on_host"] == (profile == "emulator")
    assert found["multithreaded backward"] == (profile != "emulator")


@pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported")
def test_a_chip_has_the_providers_of_a_board(musa):
    first = {name: describe(MUSA_EMULATOR_MEMORY=memory)["first"] for name, memory in PROFILES.items()}
    assert first["soc"] == first["discrete"]
    assert "host" not in first["soc"] and first["soc"]["ported"] > 500 and first["soc"]["mudnn"] > 500
    assert first["emulator"]["host"] > 500 > first["emulator"]["ported"]


@pytest.fixture(scope="module")
def undeclared(tmp_path_factory):
    """A library that answers instead of the emulator's, like an SDK that declares nothing."""
    compiler = shutil.which("c++") or shutil.which("g++")
    assert compiler, "a C++ compiler built the packages"
    library = tmp_path_factory.mktemp("sdk") / "libundeclared.so"
    source = 'extern "C" int torch_musa_capability(const char*) { return -1; }'
    command = [compiler, "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
    return library


@pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported")
def test_memory_that_the_host_addresses_does_not_make_it_compute(musa, undeclared):
    code = _DESCRIBE + 'print(torch.musa.ops.explain("aten::erfinv")["reason"])'
    described, reason = run_code(
        code, fresh=True, MUSA_EMULATOR_MEMORY="shared", LD_PRELOAD=str(undeclared), **SETTINGS
    ).splitlines()
    found = json.loads(described)
    assert found["host_addressable"] and not found["computes_on_host"] and found["multithreaded backward"]
    assert found["first"]["ported"] > 500 > found["first"]["host"]
    assert reason == "default order: ported,host", reason


_WAITS = """
import warnings, torch
import torch.nn.functional as F
from musa_runtime import _C
from tests.harness.emulator import Emulator, loaded_sdk

warnings.simplefilter("ignore")
torch.musa.init()
emulator = Emulator(loaded_sdk())
WAITS = ("musaStreamSynchronize", "musaDeviceSynchronize", "musaEventSynchronize", "musaMemcpy")
a = torch.rand(64, 64, device="musa")
b, mask, image = a.clone(), a > 0.5, torch.rand(1, 3, 16, 16, device="musa")
weight, table = torch.rand(3, 3, 3, 3, device="musa"), torch.rand(64, 4, device="musa")
index = torch.randint(0, 64, (8,), device="musa")
state = [torch.zeros(64, 64, device="musa") for _ in range(2)]
step, grid = torch.ones((), device="musa"), torch.zeros(1, 4, 4, 2, device="musa")
CALLS = {
    "add_": lambda: b.add_(1), "sort": lambda: a.sort(), "cumsum": lambda: a.cumsum(0), "mm": lambda: a @ a,
    "softmax": lambda: a.softmax(1), "embedding": lambda: F.embedding(index, table),
    "index": lambda: a[index],
    "rand": lambda: torch.rand(10, device="musa"), "randn": lambda: torch.randn(10, device="musa"),
    "randperm": lambda: torch.randperm(10, device="musa"), "arange": lambda: torch.arange(10, device="musa"),
    "tril": lambda: a.tril(), "cat": lambda: torch.cat([a, a]), "where": lambda: torch.where(mask, a, a),
    "topk": lambda: a.topk(3), "conv2d": lambda: F.conv2d(image, weight),
    "interpolate": lambda: F.interpolate(image, scale_factor=2, mode="bilinear"),
    "layer_norm": lambda: F.layer_norm(a, (64,)),
    "attention": lambda: F.scaled_dot_product_attention(image, image, image),
    "gather": lambda: a.gather(0, index.view(1, -1)), "scatter": lambda: a.scatter(0, index.view(1, -1), 1.0),
    "index_add": lambda: a.index_add(0, index, a[:8]), "foreach_add": lambda: torch._foreach_add([a, a], 1),
    "adamw": lambda: torch._fused_adamw_(
        [b], [a], state[:1], state[1:], [], [step], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0, eps=1e-8,
        amsgrad=False, maximize=False),
    "transposed copy": lambda: a.t().contiguous(), "bfloat16": lambda: a.bfloat16(),
    "cross_entropy": lambda: F.cross_entropy(a, index.repeat(8)),
    "masked_fill": lambda: a.masked_fill(mask, 0.0),
    "erfinv": lambda: a.erfinv(), "lgamma": lambda: a.lgamma(), "cdist": lambda: torch.cdist(a, a),
    "unfold": lambda: F.unfold(image, 3),
    "grid_sample": lambda: F.grid_sample(image, grid, align_corners=False),
    # The program asks for a value or for a size that depends on values.
    "item": lambda: a.sum().item(), "nonzero": lambda: mask.nonzero(), "mask": lambda: a[mask],
}
for name, call in CALLS.items():
    call(), call()
    torch.musa.synchronize()
    _C.sleep_on_stream(0.02)
    before = sum(map(emulator.calls, WAITS))
    call()
    waits = sum(map(emulator.calls, WAITS)) - before
    torch.musa.synchronize()
    if waits:
        print(name)
"""
_ASKING = {"item", "nonzero", "mask"}


@pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported")
@pytest.mark.parametrize("profile", PROFILES)
def test_operators_wait_only_if_the_program_asks(musa, profile):
    environment = {"MUSA_EMULATOR_MEMORY": PROFILES[profile], "MUSA_EMULATOR_MODE": "async"}
    waited = set(run_code(_WAITS, **{**SETTINGS, **environment}).splitlines())
    if profile == "emulator":
        assert len(waited - _ASKING) > 10, waited  # kernels of the host wait for the stream
    else:
        assert {"item"} <= waited <= _ASKING  # muDNN itself waits for the others, by no call of the runtime
