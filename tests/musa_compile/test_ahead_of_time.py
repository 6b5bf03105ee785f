# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Packages of AOTInductor for musa: compiled without any setting, loaded on the device that the caller
chooses, run with batches of other sizes, other constants and on several streams; errors name their cure.

C++ programs load them in tests/examples/test_cpp_deployment.py.
"""

from __future__ import annotations

import os
import struct
import threading
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.harness.skips import needs_torch
from tests.harness.subprocesses import run_code

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("compiler")]


class Classifier(nn.Module):
    """Images (N, 3, 9, 9) to (N, 5), with parameters, buffers, and a constant computed from a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.mixing = nn.Parameter(torch.randn(8, 8))
        self.head = nn.Linear(8, 5)
        self.register_buffer("classes", torch.arange(5.0))

    def forward(self, images):
        return self.head(self.body(images).mean((2, 3)) @ (self.mixing.t() + 1)).softmax(-1) + self.classes


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to("musa").eval()


@torch.no_grad()
def write_package(model: nn.Module, inputs: torch.Tensor, path: Path, **settings) -> str:
    needs_torch("2.13", "the interface of Inductor's C++ wrapper")
    """Compiles the model for batches of 2 to 64; returns the path of the package."""
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(model, (inputs,), dynamic_shapes=({0: batch},))
    return torch._inductor.aoti_compile_and_package(
        program, package_path=str(path), inductor_configs={"compile_threads": 1, **settings}
    )


@pytest.fixture(scope="module")
def package(cache_folder: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A package of mlp()."""
    path = tmp_path_factory.mktemp("packages") / "mlp.pt2"
    return write_package(mlp(), torch.randn(4, 8, device="musa"), path)


@pytest.fixture(scope="module", params=[False, True], ids=["folded", "folded-at-run-time"])
def classifier(request, cache_folder: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, str]:
    """A model with constants that are computed from others, and a package of it."""
    torch.manual_seed(0)
    model, images = Classifier().to("musa").eval(), torch.randn(4, 3, 9, 9, device="musa")
    path = tmp_path_factory.mktemp("packages") / "classifier.pt2"
    return model, write_package(
        model, images, path, **{"aot_inductor.use_runtime_constant_folding": request.param}
    )


def load(path: str, **options):
    from torch._inductor.package import load_package

    return load_package(path, **options)


def assert_as_eager(loaded, model: nn.Module, inputs: torch.Tensor) -> None:
    """Compares with a tolerance, because kernels add in another order than the operators of eager mode."""
    with torch.no_grad():
        torch.testing.assert_close(loaded(inputs), model(inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [2, 4, 33])
def test_batches_of_any_size(package, batch):
    assert_as_eager(load(package), mlp(), torch.randn(batch, 8, device="musa"))


def test_the_device_is_chosen_when_a_package_is_loaded(package):
    inputs = torch.randn(3, 8, device="musa:1")
    loaded = load(package, device_index=1)
    before = torch.musa.memory_allocated(0)
    assert_as_eager(loaded, mlp().to("musa:1"), inputs)
    assert torch.musa.current_device() == 0 and torch.musa.memory_allocated(0) == before


def test_models_of_one_package_are_independent(package):
    changed = mlp()
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter.mul_(1.5)
    first, second = load(package), load(package)
    names = first.get_constant_fqns()
    new = {name: value for name, value in changed.state_dict().items() if name in names}
    first.load_constants(new, check_full_update=False)
    inputs = torch.randn(3, 8, device="musa")
    kept = mlp()
    kept.load_state_dict({**kept.state_dict(), **new})
    assert_as_eager(first, kept, inputs)
    assert_as_eager(second, mlp(), inputs)


@pytest.mark.parametrize("source", ["device", "host"])
def test_constants_are_updated(package, source):
    loaded = load(package, device_index=1)
    model = mlp().to("musa:1")
    names = loaded.get_constant_fqns()
    new = {name: value * 1.5 for name, value in model.state_dict().items() if name in names}
    model.load_state_dict({**model.state_dict(), **new})
    before = torch.musa.memory_allocated(0)
    if source == "host":
        new = {name: value.cpu() for name, value in new.items()}
    loaded.load_constants(new, check_full_update=True, allow_h2d_copy=source == "host")
    assert_as_eager(loaded, model, torch.randn(3, 8, device="musa:1"))
    assert torch.musa.memory_allocated(0) == before


@pytest.mark.full
def test_constants_of_the_caller_are_read_in_place(package):
    # In a process of its own: torch never releases its references to such tensors, on any device.
    run_code(
        f"""
        import torch
        loaded = torch._inductor.aoti_load_package({package!r})
        sizes = {{"0.weight": (16, 8), "3.weight": (4, 16)}}
        new = {{name: torch.zeros(size, device="musa") for name, size in sizes.items()}}
        loaded.load_constants(new, check_full_update=False, user_managed=True)
        inputs = torch.randn(3, 8, device="musa")
        zeros = loaded(inputs)
        for value in new.values():
            value.normal_()
        assert not torch.allclose(loaded(inputs), zeros)
        """
    )


def test_threads_run_one_model_on_streams_of_their_own(package):
    loaded, model = load(package, num_runners=2), mlp()
    inputs = torch.randn(8, 8, device="musa")
    torch.musa.synchronize()
    results, failures = [], []

    def run() -> None:
        try:
            stream = torch.musa.Stream()
            with torch.no_grad(), torch.musa.stream(stream):
                for _ in range(10):
                    result = loaded(inputs)
                stream.synchronize()
                results.append(result)
        except Exception as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with torch.no_grad():
        for result in results:
            torch.testing.assert_close(result, model(inputs), rtol=1e-4, atol=1e-5)


def test_constants_are_freed_with_the_model(package):
    before = torch.musa.memory_allocated()
    loaded = load(package)
    assert torch.musa.memory_allocated() > before
    del loaded
    assert torch.musa.memory_allocated() == before


def test_a_capture_names_the_cure(package):
    loaded, inputs = load(package), torch.randn(3, 8, device="musa")
    loaded(inputs)
    outside = pytest.raises(RuntimeError, match=r"Fix: run the model outside of the capture")
    with outside, torch.musa.graph(torch.musa.MUSAGraph()):
        loaded(inputs)
    torch.musa.synchronize()


def test_the_library_is_loaded_with_the_package_loader_and_not_before():
    run_code(
        """
        import torch
        loaded = lambda: "libmusa_aoti.so" in open("/proc/self/maps").read()
        torch.musa.init()
        assert not loaded()
        import torch._inductor.package
        assert loaded()
        """
    )


@pytest.mark.parametrize("first", ["", "torch.musa.init()"])
def test_without_the_pack_the_error_names_the_pack(package, first):
    code = f"""
    import torch
    {first}
    try:
        torch._inductor.aoti_load_package({package!r})
    except RuntimeError as error:
        print(error)
    """
    told = run_code(code, TORCH_MUSA_DISABLE_PACKS="compile")
    assert "libmusa_aoti.so, which runs such models, is not loaded" in told
    assert "Fix: install musa-compile, the extra torch-musa[compile]" in told


@pytest.mark.full
def test_memory_that_the_host_cannot_address_is_refused(package):
    run_code(
        f"""
        import torch
        try:
            torch._inductor.aoti_load_package({package!r})
        except RuntimeError as error:
            assert "Fix: run the exported program instead" in str(error), error
        else:
            raise AssertionError("loaded")
        """,
        MUSA_EMULATOR_MEMORY="strict",
    )


@pytest.mark.full
@pytest.mark.parametrize("mode", ["async", "lazy"])
def test_models_wait_for_the_stream(package, mode):
    run_code(
        f"""
        import torch
        loaded = torch._inductor.aoti_load_package({package!r})
        x = torch.ones(32, 8, device="musa")
        for _ in range(20):
            x = x.cos()
        y = x
        for _ in range(4):
            y = loaded(y.sin())
            y = torch.cat([y, y], 1)
        z = torch.ones(32, 8)
        for _ in range(20):
            z = z.cos()
        torch.testing.assert_close(x.cpu(), z)
        for _ in range(4):
            z = loaded(z.sin().to("musa")).cpu()
            z = torch.cat([z, z], 1)
        torch.testing.assert_close(y.cpu(), z)
        """,
        MUSA_EMULATOR_MODE=mode,
    )


@pytest.mark.full
def test_weights_that_are_mapped_from_their_file(tmp_path):
    model, inputs = mlp(), torch.randn(4, 8, device="musa")
    path = write_package(model, inputs, tmp_path / "mapped.pt2", **{"aot_inductor.force_mmap_weights": True})
    with zipfile.ZipFile(path) as package:
        (name,) = [name for name in package.namelist() if name.endswith("wrapper.so")]
        library = package.read(name)
    # They follow the table of sections, the last part of a library; otherwise they are in a section.
    sections = struct.unpack_from("<Q", library, 40)[0]
    assert library.find(model[0].weight.detach().cpu().numpy().tobytes()) > sections
    assert_as_eager(load(path), model, inputs)


@pytest.mark.full
def test_convolutions_buffers_and_folded_constants(classifier):
    model, path = classifier
    assert_as_eager(load(path), model, torch.randn(3, 3, 9, 9, device="musa"))


@pytest.mark.full
def test_constants_on_the_host_beside_those_on_the_device(tmp_path):
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.randn(8, device="musa"))
            self.offset = nn.Buffer(torch.randn(3))
            self.shift = nn.Parameter(torch.randn(8, device="musa"))

        def forward(self, x):
            return x * self.scale + self.shift, self.offset.sin() + 1

    model, inputs = Mixed().eval(), torch.randn(4, 8, device="musa")
    loaded = load(write_package(model, inputs, tmp_path / "mixed.pt2"))
    assert_as_eager(loaded, model, inputs)


@pytest.mark.full
def test_the_caller_s_include_path_stays(monkeypatch, tmp_path):
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path))
    write_package(nn.Tanh(), torch.randn(4, 8, device="musa"), tmp_path / "tanh.pt2")
    assert os.environ["CPLUS_INCLUDE_PATH"].split(os.pathsep)[0] == str(tmp_path)
