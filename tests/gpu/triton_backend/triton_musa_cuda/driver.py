# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The driver: Triton's launcher for CUDA, on the device and the stream that are current in torch.musa."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as cuda

# torch.cuda finds the same GPU, and Triton refuses two active drivers.
cuda.CudaDriver.is_active = staticmethod(lambda: False)


class Launch(NamedTuple):
    """A launch."""

    kernel: str
    device: int
    stream: int


LAUNCHES: list[Launch] = []


class Launcher(cuda.CudaLauncher):
    """Triton's launcher, which also appends to LAUNCHES."""

    def __init__(self, source: Any, metadata: Any) -> None:
        super().__init__(source, metadata)
        self._name = metadata.name

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
        LAUNCHES.append(Launch(self._name, torch.musa.current_device(), stream))
        super().__call__(x, y, z, stream, function, *rest)


class MusaDriver(cuda.CudaDriver):
    """The driver of the devices of `torch.musa`."""

    def __init__(self) -> None:
        super().__init__()
        import torch_musa

        self.launcher_cls = Launcher
        self.get_device_capability = torch_musa.get_device_capability
        self.get_current_stream = torch_musa._MUSAC._musa_getCurrentRawStream
        self.get_current_device = torch_musa.current_device
        self.set_current_device = torch_musa.set_device

    @staticmethod
    def is_active() -> bool:
        return torch.musa.is_available()

    def get_current_target(self) -> GPUTarget:
        major, minor = self.get_device_capability(self.get_current_device())
        return GPUTarget("musa", major * 10 + minor, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("musa", self.get_current_device())

    def get_device_interface(self) -> Any:
        return torch.musa

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(256 * 2**20 // 4, dtype=torch.int, device="musa")
