# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Whole models that torch.export writes: loaded again, run on musa, compiled, and packaged ahead of time."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import nn

from benchmarks.compiled import gpt_block, llama_block
from benchmarks.gpu.models import ResNet50
from tests.harness.skips import needs_torch
from tests.musa_compile.comparison import assert_same

pytestmark = [pytest.mark.once, pytest.mark.full, pytest.mark.usefixtures("compiler")]

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "ResNet-50": (ResNet50, (3, 64, 64)),
    "GPT block": (gpt_block, (16, 128)),
    "Llama block": (llama_block, (16, 128)),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> tuple[nn.Module, torch.Tensor]:
    """A model on the CPU in eval mode, and an input of batch size 3; batch norms have running statistics."""
    make, shape = MODELS[request.param]
    torch.manual_seed(0)
    made = make()
    made(torch.randn(4, *shape))
    return made.eval(), torch.randn(3, *shape)


def loaded_again(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


def exported(model: nn.Module, x: torch.Tensor) -> torch.export.ExportedProgram:
    """The model exported for batches of any size, written to a file and read."""
    return loaded_again(
        torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},))
    )


@torch.no_grad()
def test_a_model_that_is_exported_on_the_device_runs_there(model):
    on_host, x = model
    on_device = copy.deepcopy(on_host).to("musa")
    loaded = exported(on_device, x.to("musa")).module()
    for batch in (3, 5):
        inputs = torch.randn(batch, *x.shape[1:])
        result = loaded(inputs.to("musa"))
        assert result.device.type == "musa"
        assert_same(result, on_host(inputs), tolerance=1e-3)


@torch.no_grad()
def test_a_model_that_is_exported_on_the_host_moves_to_the_device(model):
    from torch.export.passes import move_to_device_pass

    on_host, x = model
    program = move_to_device_pass(exported(on_host, x), "musa")
    assert {value.device.type for value in program.state_dict.values()} == {"musa"}
    result = program.module()(x.to("musa"))
    assert result.device.type == "musa"
    assert_same(result, on_host(x), tolerance=1e-3)


@torch.no_grad()
def test_an_exported_model_is_compiled(model):
    on_host, x = model
    loaded = exported(copy.deepcopy(on_host).to("musa"), x.to("musa")).module()
    assert_same(torch.compile(loaded)(x.to("musa")), on_host(x), tolerance=1e-3)


@torch.no_grad()
def test_an_exported_model_is_packaged_and_loaded(model, tmp_path):
    needs_torch("2.13", "the interface of Inductor's C++ wrapper")
    on_host, x = model
    program = exported(copy.deepcopy(on_host).to("musa"), x.to("musa"))
    path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    package = torch._inductor.aoti_load_package(path)
    for batch in (3, 5):
        inputs = torch.randn(batch, *x.shape[1:])
        assert_same(package(inputs.to("musa")), on_host(inputs), tolerance=1e-3)
