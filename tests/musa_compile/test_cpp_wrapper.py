# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Functions that are compiled with `config.cpp_wrapper` give the results of eager mode, on every device;
errors name their cure.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from tests.harness.skips import needs_torch
from tests.harness.subprocesses import run_code

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("compiler")]


@pytest.fixture(autouse=True)
def cpp_wrapper(compiler) -> Iterator[None]:
    needs_torch("2.13", "the interface of Inductor's C++ wrapper")
    from torch._inductor import config

    with config.patch(cpp_wrapper=True):
        yield


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def assert_compiled_as_eager(function, *inputs: torch.Tensor, **options) -> None:
    """The compiled function gives the results of the function, up to the order in which kernels add."""
    compiled = torch.compile(function, fullgraph=True, **options)
    torch.testing.assert_close(compiled(*inputs), function(*inputs), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_model_runs_through_a_wrapper_in_cpp():
    from torch._inductor.utils import run_and_get_code

    model, inputs = mlp().to("musa"), torch.randn(5, 8, device="musa")
    result, (code,) = run_and_get_code(torch.compile(model), inputs)
    torch.testing.assert_close(result, model(inputs), rtol=1e-4, atol=1e-5)
    assert result.device == torch.device("musa", 0)
    # The products go to musa's operators, and the kernel waits for the stream.
    assert "aoti_torch_musa_addmm_out(" in code
    assert "musa_compile::HostKernel host_kernel(0, " in code


@pytest.mark.full
def test_training_with_convolutions_and_dynamic_sizes():
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)
    model = nn.Sequential(*layers).to("musa")
    compiled = torch.compile(model, dynamic=True)
    for batch in (2, 5):
        inputs = torch.randn(batch, 3, 8, 8, device="musa")
        gradients = []
        for function in (model, compiled):
            model.zero_grad()
            function(inputs).square().mean().backward()
            gradients.append([parameter.grad.clone() for parameter in model.parameters()])
        torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


@pytest.mark.full
@torch.no_grad()
def test_the_second_device():
    assert_compiled_as_eager(mlp().to("musa:1"), torch.randn(3, 8, device="musa:1"))


@pytest.mark.full
def test_tensors_of_the_host_beside_those_of_the_device():
    def mixed(host, device):
        return host.sin() + 1, (device.cos() * 2).sum(1), host.to("musa") + device

    assert_compiled_as_eager(mixed, torch.randn(4, 6), torch.randn(4, 6, device="musa"))


@pytest.mark.full
def test_operators_without_a_function_in_c_are_dispatched():
    def rare(x):
        return torch.linalg.matrix_exp(x).tan() + torch.special.bessel_j1(x)

    assert_compiled_as_eager(rare, torch.rand(4, 4, device="musa"))


@pytest.mark.full
def test_pending_work_that_needs_the_interpreter_does_not_block_a_kernel():
    run_code(
        """
        import torch
        from torch._inductor import config
        with config.patch(cpp_wrapper=True, compile_threads=1):
            double = torch.compile(lambda x: x.sin() * 2)
            x = torch.ones(1 << 16, device="musa")
            for _ in range(3):
                y = double(x.cos())
            torch.testing.assert_close(y.cpu(), torch.ones(1 << 16).cos().sin() * 2)
        """,
        MUSA_EMULATOR_MODE="async",
    )


@pytest.mark.full
@torch.no_grad()
def test_kernels_are_in_profiles():
    compiled = torch.compile(lambda x: (x.sin() * 2).cumsum(0))
    x = torch.randn(64, device="musa")
    compiled(x)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]
    with torch.profiler.profile(activities=activities) as profile:
        compiled(x)
    assert [event.name for event in profile.events() if "cpp_fused" in event.name]


@pytest.mark.full
@torch.no_grad()
def test_a_capture_names_the_cure():
    compiled = torch.compile(lambda x: x.sin() * 2)
    x = torch.randn(64, device="musa")
    compiled(x)
    graph = torch.musa.MUSAGraph()
    with pytest.raises(RuntimeError, match=r"API call failed"), torch.musa.graph(graph):
        compiled(x)


@pytest.mark.full
def test_a_stream_within_the_function_names_the_cure():
    stream = torch.Stream("musa")

    def on_a_stream(x):
        with stream:
            return x.sin() * 2

    with pytest.raises(Exception, match=r"Fix: compile without config\.cpp_wrapper"):
        torch.compile(on_a_stream, fullgraph=True)(torch.randn(8, device="musa"))
