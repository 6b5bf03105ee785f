# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The driver: a launch waits for its stream and interprets the kernel on the calling thread.

It refuses launches for which a GPU would give an error or wrong results: a kernel that was loaded on another
device, operands on another device, and operands that are less aligned than the compiler assumes.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from . import ttir
from .interpreter import Interpreter


class Launch(NamedTuple):
    """A completed launch."""

    kernel: str
    device: int
    stream: int


LAUNCHES: list[Launch] = []


class Loaded(NamedTuple):
    """A kernel on a device."""

    kernel: ttir.Kernel
    device: int


class Utils:
    """The functions of a driver that Triton's runtime calls."""

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        return None, Loaded(_parsed(binary), device), 32, 0, 1024

    def unload_module(self, module: Any) -> None:
        pass

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 65536, "multiprocessor_count": 56, "max_num_regs": 65536, "warpSize": 32}


@functools.cache
def _parsed(binary: bytes) -> ttir.Kernel:
    return ttir.parse(binary.decode())


class Launcher:
    """Launches a kernel. Triton passes the source, whose signature marks the arguments that are constants."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._is_constant = [kind == "constexpr" for kind in source.signature.values()]

    def __call__(self, x: int, y: int, z: int, stream: int, function: Loaded, *rest: Any) -> None:
        given = rest[4:]  # after two kinds of metadata and two hooks
        values = [value for value, constant in zip(given, self._is_constant, strict=True) if not constant]
        launch(function, (x, y, z), stream, values)


def launch(function: Loaded, size: tuple[int, int, int], stream: int, values: list[Any]) -> None:
    """Launch a loaded kernel on the current device.

    Args:
        function (Loaded): from `load_binary`.
        size (tuple of int): size of the grid.
        stream (int): the handle of a stream of the current device.
        values (list): tensors and numbers.

    Raises:
        RuntimeError: for another device, and for operands that are not aligned.
    """
    kernel, device = function
    current = torch.musa.current_device()
    if device != current:
        raise RuntimeError(f"{kernel.name} is loaded on device {device}, and the current device is {current}")
    arguments = []
    for argument, value in zip(kernel.arguments, values, strict=True):
        if isinstance(value, torch.Tensor):
            if value.device.index != device:
                raise RuntimeError(f"{argument.name} of {kernel.name} is on {value.device}, not on {device}")
            value = value.data_ptr()
        if argument.divisibility > 1 and value % argument.divisibility:
            raise RuntimeError(f"{argument.name} of {kernel.name} is no multiple of {argument.divisibility}")
        arguments.append(torch.tensor(value, dtype=argument.type.dtype))
    if torch.musa.is_current_stream_capturing():
        raise RuntimeError("the stub does not record launches into a graph")
    waited = torch.musa.ExternalStream(stream, device=device) if stream else torch.musa.default_stream(device)
    waited.synchronize()
    LAUNCHES.append(Launch(kernel.name, device, stream))
    for k, j, i in itertools.product(range(size[2]), range(size[1]), range(size[0])):
        Interpreter((i, j, k), size).run(kernel, arguments)


class StubDriver(DriverBase):
    """The driver of the devices of `torch.musa`."""

    def __init__(self) -> None:
        self.utils = Utils()
        self.launcher_cls = Launcher

    @classmethod
    def is_active(cls) -> bool:
        return torch.musa.is_available()

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError("the stub has no launcher in C++")

    # Through the names of torch.musa, which the vendor's driver uses.
    def get_current_target(self) -> GPUTarget:
        import torch_musa

        major, minor = torch_musa.get_device_capability(torch_musa.current_device())
        return GPUTarget("musa", major * 10 + minor, 32)

    def get_current_device(self) -> int:
        import torch_musa

        return torch_musa.current_device()

    def set_current_device(self, device: int) -> None:
        import torch_musa

        torch_musa.set_device(device)

    def get_current_stream(self, device: int) -> int:
        import torch_musa

        return torch_musa._MUSAC._musa_getCurrentRawStream(device)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("musa", self.get_current_device())

    def get_device_interface(self) -> Any:
        return torch.musa

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench
