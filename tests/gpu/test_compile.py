# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.compile on a GPU through stock Triton (`triton_backend`): kernels, streams, graphs and devices."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from tests.harness.skips import needs_torch
from tests.harness.subprocesses import run_code
from tests.musa_compile.comparison import ONE_THREAD
from tests.musa_compile.test_triton import ALL_CASES, CASES, MEASURED, TRAINING

BACKEND = str(Path(__file__).with_name("triton_backend"))
THROUGH_TRITON = f"{ONE_THREAD}from triton_musa_cuda.driver import LAUNCHES\n"


def run(code: str, folder: Path) -> list[str]:
    path = os.pathsep.join(filter(None, [BACKEND, os.environ.get("PYTHONPATH")]))
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(folder), "TRITON_CACHE_DIR": str(folder)}
    return run_code(
        THROUGH_TRITON + code, fresh=True, PYTHONPATH=path, TORCH_MUSA_OPS=None, **caches
    ).splitlines()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """For each case: whether the result is right, devices of launches, the current device afterwards."""
    devices = 2 if torch.musa.device_count() > 1 else 1
    chosen = {name: case for name, case in CASES.items() if devices > 1 or "musa:1" not in case}
    return json.loads(run(ALL_CASES % repr(chosen), tmp_path_factory.mktemp("cases"))[-1])


def test_compiled_results_are_those_of_eager_mode(found: dict) -> None:
    wrong = [name for name, (right, _, current) in found.items() if not right or current != 0]
    assert not wrong
    assert len(found) >= len(CASES) - 2
    expected = {"second device": [1], "two devices": [0, 1]}
    assert {name: devices for name, (_, devices, _) in found.items()} == {
        name: expected.get(name, [0]) for name in found
    }


def test_training_random_numbers_and_dynamic_shapes(tmp_path: Path) -> None:
    assert " ".join(run(TRAINING, tmp_path)).split() == ["True", "True", "True", "False", "True", "True"]


STREAMS = """
f = torch.compile(lambda x: x * 2 + 1, fullgraph=True)
x = torch.ones(1 << 20, device="musa")
f(x)
side = torch.musa.Stream()
LAUNCHES.clear()
with torch.musa.stream(side):
    torch.musa._sleep(200_000_000)
    y = torch.full((1 << 20,), 5.0, device="musa")
    result = f(y)
print({launch.stream for launch in LAUNCHES} == {side.musa_stream}, side.query())
side.synchronize()
print(bool((result == 11).all()))
"""


def test_kernels_are_launched_on_the_current_stream(tmp_path: Path) -> None:
    assert " ".join(run(STREAMS, tmp_path)).split() == ["True", "False", "True"]


GRAPHS = """
from torch import nn
layers = [nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)) for _ in range(6)]
model = nn.Sequential(*layers).to("musa")
compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
same, launches = [], []
with torch.no_grad():
    for _ in range(6):
        x = torch.randn(16, 64, device="musa")
        LAUNCHES.clear()
        result = compiled(x)
        launches.append(len(LAUNCHES))
        same.append(torch.allclose(result, model(x), atol=1e-4))
print(all(same), launches[0] > 0, launches[-1])
"""


def test_a_graph_replays_the_kernels(tmp_path: Path) -> None:
    assert " ".join(run(GRAPHS, tmp_path)).split() == ["True", "True", "0"]


def test_configurations_are_measured_on_the_device(tmp_path: Path) -> None:
    needs_torch("2.12", "register_benchmarker")
    assert run(MEASURED, tmp_path) == ["True True True"]


# The head of a language model with an odd number of tokens: products are measured with and without padding.
HEAD = """
from musa_compile import padded_products
x = torch.randn(4096, 768, device="musa", dtype=torch.bfloat16, requires_grad=True)
weight = torch.randn(50257, 768, device="musa", dtype=torch.bfloat16, requires_grad=True)
head = lambda x: torch.nn.functional.linear(torch.tanh(x), weight)
expected = head(x)
gradient = torch.randn_like(expected)
wanted = torch.autograd.grad(expected, (x, weight), gradient)
result = torch.compile(head, fullgraph=True)(x)
found = torch.autograd.grad(result, (x, weight), gradient)
print(padded_products._is_faster.cache_info().misses)
for a, b in zip((result, *found), (expected, *wanted)):
    print(a.stride() == b.stride() and bool(((a - b).float().norm() < 0.01 * b.float().norm())))
"""


def test_products_with_short_rows_are_measured_and_have_the_results_of_eager_mode(tmp_path: Path) -> None:
    assert run(HEAD, tmp_path) == ["3", "True", "True", "True"]
