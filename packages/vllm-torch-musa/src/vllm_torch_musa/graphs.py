# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Graphs of the model's decoding steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from vllm.compilation.counter import compilation_counter
from vllm.compilation.cuda_graph import CUDAGraphEntry, CUDAGraphWrapper
from vllm.compilation.monitor import validate_cudagraph_capturing_enabled
from vllm.config import CUDAGraphMode
from vllm.distributed.parallel_state import GraphCaptureContext
from vllm.forward_context import get_forward_context, is_forward_context_available

from torch_musa import musa


class GraphWrapper(CUDAGraphWrapper):
    """Records a graph for each size of batch on its first call, and replays it afterwards.

    Each graph keeps its result, so the graphs of a process share a memory pool except for their results.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_forward_context_available():
            return self.runnable(*args, **kwargs)
        context = get_forward_context()
        mode = context.cudagraph_runtime_mode
        if mode in (CUDAGraphMode.NONE, None) or mode != self.runtime_mode:
            return self.runnable(*args, **kwargs)
        batch = context.batch_descriptor
        entry = self.concrete_cudagraph_entries.get(batch)
        if entry is None:
            validate_cudagraph_capturing_enabled()
            entry = CUDAGraphEntry(batch_descriptor=batch)
            self._capture(entry, args, kwargs)
            self.concrete_cudagraph_entries[batch] = entry
            # A capture computes nothing, so the result is valid after a replay only.
        entry.cudagraph.replay()
        return entry.output

    def _capture(self, entry: CUDAGraphEntry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        graph = musa.MUSAGraph()
        with musa.graph(graph, pool=self.graph_pool, stream=musa.current_stream()):
            entry.output = self.runnable(*args, **kwargs)
        entry.cudagraph = graph
        compilation_counter.num_cudagraph_captured += 1


@contextmanager
def graph_capture(device: torch.device) -> Iterator[GraphCaptureContext]:
    """Runs the block on a stream of its own, on which graphs can be captured."""
    stream = musa.Stream(device)
    stream.wait_stream(musa.current_stream(device))
    with musa.stream(stream):
        yield GraphCaptureContext(stream)
