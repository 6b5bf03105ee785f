# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs the model's steps on a device."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.v1.worker import gpu_model_runner

from .graphs import GraphWrapper, graph_capture


class MusaModelRunner(gpu_model_runner.GPUModelRunner):
    """vLLM's model runner, with the graphs of musa."""

    model: Any

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        super().load_model(*args, **kwargs)
        wrapper = self.model
        # Pieces of a compiled model have the class that the platform names; the whole model has vLLM's own.
        if type(wrapper) is CUDAGraphWrapper:
            self.model = GraphWrapper(
                wrapper.runnable, wrapper.vllm_config, wrapper.runtime_mode, wrapper.cudagraph_options
            )
            CUDAGraphWrapper._all_instances.discard(wrapper)

    def capture_model(self) -> int:
        """Captures the graphs. Returns the bytes of device memory that they take."""
        # The function of vLLM makes a stream of CUDA.
        with patch.object(gpu_model_runner, "graph_capture", graph_capture):
            return super().capture_model()
