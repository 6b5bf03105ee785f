# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The compiler: Triton's for CUDA, for targets that are named "musa"."""

from __future__ import annotations

from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler as cuda


class MusaBackend(cuda.CUDABackend):
    """Compiles for the GPU under musa-cuda."""

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        # Triton's passes for CUDA read the target's name and capability.
        self.target = GPUTarget("cuda", target.arch, target.warp_size)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "musa"

    def hash(self) -> str:
        return f"musa on {super().hash()}"
