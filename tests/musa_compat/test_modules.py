# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules of the vendor's torch_musa: the objects behind their names, and the CMake package."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import torch_musa

pytestmark = pytest.mark.once


def test_the_scaler_of_fsdp_is_for_musa(musa):
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler as OfTorch

    from torch_musa.distributed.fsdp import ShardedGradScaler

    scaler = ShardedGradScaler(init_scale=8.0)
    assert isinstance(scaler, OfTorch) and scaler.is_enabled()
    assert scaler.scale(torch.ones((), device="musa")).item() == 8.0
    assert not ShardedGradScaler(enabled=False).is_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # torch's default device is a literal. If this fails, the page docs/design/compat.md is out of date.
        assert not OfTorch().is_enabled() and OfTorch(device="musa").is_enabled()


def test_the_architecture_is_that_of_the_current_device(two_devices):
    from torch_musa.testing import get_musa_arch

    major, minor = torch.musa.get_device_capability()
    assert get_musa_arch() == 10 * major + minor > 10


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_modules_of_core_have_the_objects_of_torch_musa(musa):
    from torch_musa.core import _utils, device, memory
    from torch_musa.core.amp.grad_scaler import GradScaler

    assert device.Device is musa.device and device.set_device is musa.set_device
    assert memory.empty_cache is musa.empty_cache
    assert memory._record_memory_history is musa.memory._record_memory_history
    assert GradScaler is musa.amp.GradScaler
    assert _utils._get_musa_device_index("musa:1") == 1
    assert _utils._get_musa_device_index(None, optional=True) == musa.current_device()
    with pytest.raises(AttributeError, match=r"torch_musa\.core\.device' has no attribute 'Devise'"):
        device.Devise  # noqa: B018
    assert "set_device" in dir(device)
    assert musa.core is torch_musa.core and musa.core._utils is _utils


def test_unified_memory_is_answered_with_a_warning():
    with pytest.warns(UserWarning, match="has no effect: tensors are copied"):
        torch_musa.use_unified_cpu_allocator()


PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(check LANGUAGES CXX)
find_package(TorchMusa REQUIRED)
get_target_property(folders torch_musa INTERFACE_INCLUDE_DIRECTORIES)
get_target_property(libraries torch_musa INTERFACE_LINK_LIBRARIES)
message(STATUS "found: ${folders} ${libraries}")
"""


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_cmake_finds_the_package(tmp_path: Path) -> None:
    from torch_musa.core import cmake_prefix_path

    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    cmake = Path(sys.executable).with_name("cmake")
    done = subprocess.run(
        [
            *(str(cmake), "-S", str(tmp_path), "-B", str(tmp_path / "build")),
            *(f"-DCMAKE_PREFIX_PATH={cmake_prefix_path}", f"-DPython_EXECUTABLE={sys.executable}"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "found:" in line)
    folder, library = line.split("found: ")[1].split()
    assert (Path(folder) / "torch_musa" / "csrc" / "core" / "MUSAGuard.h").is_file()
    assert library == "musa::musa_runtime"
