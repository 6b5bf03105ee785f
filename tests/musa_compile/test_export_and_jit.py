# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.export, torch.jit, make_fx, Inductor's modes and caches with musa tensors."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

from tests.harness.skips import needs_torch
from tests.musa_compile.comparison import assert_same, scaled

# Without the leak check, which comes with the fixture `musa`: strict export keeps tensors of a model (on the
# CPU as well), and torch.jit and freezing keep constants until the process ends.
pytestmark = [pytest.mark.once, pytest.mark.usefixtures("compiler")]


def convolutions(channels: int = 4) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, channels, 3), nn.BatchNorm2d(channels), nn.ReLU()).to("musa").eval()


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    model, x = convolutions(), torch.randn(2, 3, 8, 8, device="musa")
    assert_same(torch.export.export(model, (x,), strict=strict).module()(x), model(x))


@pytest.mark.full
def test_export_with_symbolic_sizes_is_saved_and_loaded():
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU()).to("musa")
    x = torch.randn(4, 8, device="musa")
    sizes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model, (x,), dynamic_shapes=sizes).run_decompositions()
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    y = torch.randn(9, 8, device="musa")
    assert_same(torch.export.load(file).module()(y), model(y))


@pytest.mark.full
def test_an_exported_program_moves_to_the_device():
    from torch.export.passes import move_to_device_pass

    model, x = nn.Linear(8, 8), torch.randn(4, 8)
    program = move_to_device_pass(torch.export.export(model, (x,)), "musa")
    result = program.module()(x.to("musa"))
    assert result.device.type == "musa"
    assert_same(result, model(x))


@pytest.mark.full
def test_an_exported_program_is_trained():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).to("musa")
    x = torch.randn(4, 8, device="musa")
    exported = torch.export.export(model, (x,)).module()
    exported(x).sum().backward()
    assert all(parameter.grad is not None for parameter in exported.parameters())


def test_scripted_model():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).to("musa")
    scripted, x = torch.jit.script(model), torch.randn(4, 8, device="musa")
    for _ in range(4):  # the profiling executor optimizes after the first runs
        assert_same(scripted(x), model(x))
    scripted(x).sum().backward()
    assert model[0].weight.grad is not None


@pytest.mark.full
def test_traced_model_is_frozen_saved_and_loaded():
    model, x = convolutions(), torch.randn(2, 3, 8, 8, device="musa")
    file = io.BytesIO()
    torch.jit.save(torch.jit.freeze(torch.jit.trace(model, x)), file)
    file.seek(0)
    loaded = torch.jit.load(file, map_location="musa")
    for _ in range(4):
        assert_same(loaded(x), model(x), 1e-3)  # batch norm is folded into the convolution


@pytest.mark.full
def test_traced_model_is_optimized_for_inference():
    model, x = convolutions(), torch.randn(2, 3, 8, 8, device="musa")
    optimized = torch.jit.optimize_for_inference(torch.jit.trace(model, x))
    assert_same(optimized(x), model(x), 1e-3)


def test_traced_pointwise_functions_are_not_fused_wrongly():
    x = torch.randn(64, device="musa")
    traced = torch.jit.trace(scaled, x)
    for _ in range(5):
        assert_same(traced(x), scaled(x))


@pytest.mark.parametrize("tracing", ["real", "fake", "symbolic"])
def test_make_fx(tracing):
    from torch.fx.experimental.proxy_tensor import make_fx

    def f(x):
        return x.softmax(-1) + torch.ones(3, device="musa")

    x = torch.randn(3, device="musa")
    graph = make_fx(f, tracing_mode=tracing)(x)
    for value in (x, torch.randn(3, device="musa")):
        assert_same(graph(value), f(value))


@pytest.mark.full
def test_max_autotune():
    def f(x):
        return (x @ x).relu()

    x = torch.randn(32, 32, device="musa")
    assert_same(torch.compile(f, mode="max-autotune")(x), f(x), 1e-3)


def test_backend_cudagraphs_runs_eagerly():
    x = torch.randn(8, device="musa")
    assert_same(torch.compile(scaled, backend="cudagraphs")(x), scaled(x))


@pytest.mark.full
def test_freezing():
    model, x = convolutions(8), torch.randn(2, 3, 8, 8, device="musa")
    with torch._inductor.config.patch(freezing=True), torch.no_grad():
        assert_same(torch.compile(model)(x), model(x), 1e-3)


@pytest.mark.full
def test_saved_caches_are_loaded():
    x = torch.randn(8, device="musa")
    torch.compile(scaled)(x)
    artifacts = torch.compiler.save_cache_artifacts()
    assert artifacts is not None
    torch._dynamo.reset()
    torch.compiler.load_cache_artifacts(artifacts[0])
    assert_same(torch.compile(scaled)(x), scaled(x))


@pytest.mark.full
def test_a_second_compilation_comes_from_the_cache():
    from torch._dynamo.utils import counters

    x = torch.randn(9, device="musa")
    hits = []
    for _ in range(2):
        torch._dynamo.reset()
        counters.clear()
        assert_same(torch.compile(scaled)(x), scaled(x))
        hits.append(counters["inductor"]["fxgraph_cache_hit"])
    assert hits[1] == hits[0] + 1 or hits == [1, 1]


def test_code_of_another_version_is_not_taken_from_the_cache(monkeypatch):
    from musa_compile import cache_key

    keys = [cache_key.key(generator) for generator in ("C++", "C++", "none")]
    monkeypatch.setattr(cache_key, "_digest_of_sources", lambda: b"of other sources")
    keys.append(cache_key.key("C++"))
    assert keys[0] == keys[1] and len(set(keys)) == 3


@pytest.mark.full
def test_compiled_ahead_of_time_in_the_process():
    needs_torch("2.13", "aot_compile")
    x = torch.randn(8, device="musa")
    compiled = torch.compile(scaled, fullgraph=True).aot_compile(((x,), {}))
    assert_same(compiled(x), scaled(x))


@pytest.mark.full
def test_standalone_compile():
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(8, device="musa")
    compiled = torch._inductor.standalone_compile(make_fx(scaled, tracing_mode="fake")(x), [x])
    result = compiled(x)
    assert_same(result[0] if isinstance(result, (list, tuple)) else result, scaled(x))


def test_is_compile_supported_says_so():
    assert torch._dynamo.utils.is_compile_supported("musa")
