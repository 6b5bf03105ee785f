# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Graphs: work that is captured once and launched as a whole, with torch.cuda's names.

Capturing runs nothing. Tensors created during a capture are allocated in the graph's memory pool, at
addresses that every replay uses again; so inputs are copied into the tensors that were captured, and outputs
are read from the tensors that the capture created.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, overload

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from . import _compat
from . import device as _device
from . import memory as _memory
from . import streams as _streams
from ._load import extension
from .initialization import is_initialized, lazy_init, on_change

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from ._types import PoolId

    _Call = TypeVar("_Call", bound=Callable[..., Any])


def is_current_stream_capturing() -> bool:
    """Whether the current stream is being captured into a graph. False before the first use of the device."""
    return is_initialized() and extension().is_current_stream_capturing()


def _check_capturable(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
    # Optimizers without the option, such as SGD, keep no state on the host.
    groups = optimizer.param_groups
    if torch.compiler.is_compiling() or all(group.get("capturable", True) for group in groups):
        return
    if is_current_stream_capturing():
        name = type(optimizer).__name__
        raise RuntimeError(
            f"Attempting MUSA graph capture of step() for an instance of {name} but param_groups' capturable "
            "is False: its step count is on the host, so every replay would repeat the captured step.\n"
            f"Fix: {name}(..., capturable=True)"
        )


def _check_optimizers(initialized: bool) -> None:
    # torch's own check names CUDA and XPU only.
    if initialized:
        register_optimizer_step_pre_hook(_check_capturable)


on_change(_check_optimizers)


def graph_pool_handle() -> PoolId:
    """Return a token for a memory pool; captures that get it as `pool` share memory.

    Graphs may share a pool if they are replayed in the order in which they were captured, and never at the
    same time: a later graph may store its results where an earlier one had its intermediate values.
    """
    lazy_init()
    return extension().graph_pool_handle()


class MUSAGraph:
    """Captured work of one device that can be launched repeatedly.

    Prefer :class:`graph`, which begins and ends the capture.

    Args:
        keep_graph (bool): keep the SDK's graph after the capture. It is then instantiated by
            :meth:`instantiate` or the first :meth:`replay`, instead of at the end of the capture.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        lazy_init()
        self._graph = extension()._MUSAGraph(keep_graph)

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Let random operators in the capture draw from `generator`. Call it before the capture begins.

        The default generator of the device is always registered.
        """
        self._graph.register_generator_state(generator)

    def capture_begin(self, pool: PoolId | None = None, capture_error_mode: str = "global") -> None:
        """Begin to capture the current stream, which must not be the default stream.

        Args:
            pool (tuple[int, int] or None): the memory pool, from :func:`graph_pool_handle` or another graph's
                :meth:`pool`; None creates a new one.
            capture_error_mode (str): which SDK calls that a graph cannot record invalidate the capture:
                "global", those of any thread; "thread_local", those of this thread; "relaxed", only those on
                the captured streams.

        Raises:
            RuntimeError: on the default stream, in another capture, or if this object already has a capture.
            ValueError: an unknown `capture_error_mode`.
        """
        self._graph.capture_begin(pool, capture_error_mode)

    def capture_end(self) -> None:
        """End the capture, and instantiate the graph for :meth:`replay` (unless `keep_graph`).

        Raises:
            RuntimeError: the capture failed; the message names the first operator or call that cannot be
                captured. The object is then empty and can be used again.
        """
        self._graph.capture_end()

    def instantiate(self) -> None:
        """Instantiate the captured graph for launching. Needs `keep_graph=True`."""
        self._graph.instantiate()

    def replay(self) -> None:
        """Launch the graph on the current stream of its device.

        Random operators continue from the current offset of their generator, so each replay draws new
        numbers: the same that the operators would draw if they were called one by one.

        An error in the replayed work itself, such as an index out of range, is raised when the host next
        waits for the device.
        """
        self._graph.replay()

    def reset(self) -> None:
        """Free the graph and release its pool. A capture in progress is ended and discarded."""
        self._graph.reset()

    def pool(self) -> PoolId:
        """The id of the graph's memory pool, for another capture's `pool`."""
        return self._graph.pool()

    def enable_debug_mode(self) -> None:
        """Keep the SDK's graph for :meth:`debug_dump`. Call it before the capture."""
        self._graph.enable_debug_mode()

    def debug_dump(self, debug_path: str | os.PathLike[str]) -> None:
        """Write the graph to a file in Graphviz's format."""
        self._graph.debug_dump(str(debug_path))

    def raw_musa_graph(self) -> int:
        """The SDK's `musaGraph_t`, as an int. Needs `keep_graph=True`."""
        return self._graph.raw_musa_graph()

    def raw_musa_graph_exec(self) -> int:
        """The SDK's `musaGraphExec_t`, as an int."""
        return self._graph.raw_musa_graph_exec()


class graph:
    """Context manager that captures the work of its body into a graph.

    Synchronizes the device and frees cached memory first. If the body raises, the capture is
    discarded, the graph is reset and the exception propagates.

    Args:
        musa_graph (MUSAGraph): the graph to capture into.
        pool, capture_error_mode: see :meth:`MUSAGraph.capture_begin`.
        stream (torch.musa.Stream or None): current in the body; None takes a stream kept for captures.
    """

    default_capture_stream: dict[int, _streams.Stream] | None = (
        None  # by device index, created at the first use
    )

    def __init__(
        self,
        musa_graph: MUSAGraph,
        pool: PoolId | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        lazy_init()
        self.musa_graph = musa_graph
        self.pool = pool
        self.capture_stream = self._stream_of_current_device() if stream is None else stream
        self.capture_error_mode = capture_error_mode
        self._context = _streams.stream(self.capture_stream)

    @classmethod
    def _stream_of_current_device(cls) -> _streams.Stream:
        if graph.default_capture_stream is None:
            graph.default_capture_stream = {}
        index = _device.current_device()
        if index not in graph.default_capture_stream:
            graph.default_capture_stream[index] = _streams.Stream(index)
        return graph.default_capture_stream[index]

    def __enter__(self) -> None:
        _device.synchronize()
        if torch.compiler.config.force_cudagraph_gc:
            gc.collect()
        _memory.empty_cache()
        _compat.empty_host_cache()
        self._context.__enter__()
        try:
            self.musa_graph.capture_begin(pool=self.pool, capture_error_mode=self.capture_error_mode)
        except BaseException:
            self._context.__exit__(None, None, None)
            raise

    def __exit__(self, exc_type: Any, exc: Any, traceback: Any) -> None:
        try:
            if exc_type is None:
                self.musa_graph.capture_end()
            else:
                # Ending it would fail too, and hide the exception of the body.
                self.musa_graph.reset()
        finally:
            self._context.__exit__(exc_type, exc, traceback)


@overload
def make_graphed_callables(
    callables: tuple[Callable[..., Any], ...],
    sample_args: tuple[tuple[Any, ...], ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolId | None = None,
) -> tuple[Callable[..., Any], ...]: ...
@overload
def make_graphed_callables(
    callables: _Call,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolId | None = None,
) -> _Call: ...
def make_graphed_callables(
    callables: Any,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolId | None = None,
) -> Any:
    """Return versions of functions or modules whose forward and backward passes are graphs.

    A graphed callable takes part in autograd like its source. It copies its arguments to the captured
    tensors, replays, and returns results that are valid until its next call.

    Args:
        callables (Module, function, or tuple of these): what to capture. Members of a tuple share one pool,
            so they must be called in the order of the tuple. A module is changed in place and
            returned; in the other mode (training or evaluation) it runs without a graph.
        sample_args (tuple of tensors, or tuple of such tuples): one tuple for each callable, in its order.
            Containers of tensors are allowed, other values are not. Shapes, dtypes and `requires_grad` must
            be those of the later calls.
        num_warmup_iters (int): number of runs of each before the capture.
        allow_unused_input (bool): whether inputs that need a gradient may be unused.
        pool (tuple[int, int] or None): see :func:`graph_pool_handle`.

    Returns:
        The graphed callables: one, or a tuple.

    Raises:
        RuntimeError: under autocast with its cache on, for modules with hooks or with buffers that need
            gradients, and for arguments that are not tensors.

    No second derivatives. Parameters and buffers of a module may not be replaced afterwards, only written to.
    """
    if torch.is_autocast_enabled("musa") and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables cannot be used under autocast with its cache: the casts of the weights "
            "would be cached in the graph's memory. Fix: torch.autocast('musa', cache_enabled=False)."
        )
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    if len(callables) != len(sample_args):
        raise RuntimeError(f"{len(callables)} callables were given with sample_args for {len(sample_args)}.")
    lazy_init()
    plans = [_Plan(call, args, allow_unused_input) for call, args in zip(callables, sample_args)]
    pool = graph_pool_handle() if pool is None else pool

    # Warm-up: the effects of first calls (workspaces, caches) must not become part of a graph.
    _device.synchronize()
    with _streams.stream(_streams.Stream()):
        for plan in plans:
            for _ in range(num_warmup_iters):
                plan.warm_up()
    _device.synchronize()

    # One pool serves all graphs because their order is known: forward in order, backward in reverse.
    for plan in plans:
        plan.capture_forward(pool)
    for plan in reversed(plans):
        plan.capture_backward(pool)
    graphed = tuple(plan.finish() for plan in plans)
    return graphed[0] if single else graphed


class _Plan:
    """A callable while it is being captured."""

    def __init__(self, call: Any, args: tuple[Any, ...], allow_unused_input: bool) -> None:
        self.call = call
        self.args = args
        self.allow_unused_input = allow_unused_input
        self.is_module = isinstance(call, torch.nn.Module)
        if self.is_module:
            self._check_module()
        self.inputs, self.inputs_spec = torch.utils._pytree.tree_flatten(args)
        if not all(isinstance(value, torch.Tensor) for value in self.inputs):
            raise RuntimeError("make_graphed_callables takes sample_args that consist of tensors only.")
        self.parameters = tuple(call.parameters()) if self.is_module else ()
        # Everything whose gradient the backward graph may compute.
        self.surface = (*self.inputs, *self.parameters)
        self.forward_graph = MUSAGraph()
        self.backward_graph: MUSAGraph | None = None

    def _check_module(self) -> None:
        module = self.call
        if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
            raise RuntimeError(
                "A module that is to be graphed must have no hooks: they would run at the capture and never "
                "again. Fix: register them on the graphed module."
            )
        if any(buffer.requires_grad for buffer in module.buffers()):
            raise RuntimeError("A module that is to be graphed may have no buffer that needs a gradient.")

    def _run(self) -> tuple[list[torch.Tensor], Any]:
        outputs, spec = torch.utils._pytree.tree_flatten(self.call(*self.args))
        if not all(isinstance(value, torch.Tensor) for value in outputs):
            raise RuntimeError("A callable that is to be graphed must return tensors only.")
        return outputs, spec

    def _gradients(
        self, outputs: Sequence[torch.Tensor], grad_outputs: Sequence[torch.Tensor | None]
    ) -> list[torch.Tensor | None]:
        wanted = [value for value in self.surface if value.requires_grad]
        given = [value for value in outputs if value.requires_grad]
        if not wanted or not given:
            return [None] * len(self.surface)
        found = iter(
            torch.autograd.grad(
                given,
                wanted,
                grad_outputs=[g for g in grad_outputs if g is not None],
                allow_unused=self.allow_unused_input,
            )
        )
        return [next(found) if value.requires_grad else None for value in self.surface]

    def warm_up(self) -> None:
        outputs, _ = self._run()
        self._gradients(outputs, _grad_outputs(outputs))

    def capture_forward(self, pool: PoolId) -> None:
        with graph(self.forward_graph, pool=pool):
            self.outputs, self.outputs_spec = self._run()

    def capture_backward(self, pool: PoolId) -> None:
        self.grad_outputs = _grad_outputs(self.outputs)
        self.grad_inputs: list[torch.Tensor | None] = [None] * len(self.surface)
        if not any(g is not None for g in self.grad_outputs) or not any(
            v.requires_grad for v in self.surface
        ):
            return
        self.backward_graph = MUSAGraph()
        with graph(self.backward_graph, pool=pool):
            self.grad_inputs = self._gradients(self.outputs, self.grad_outputs)

    def finish(self) -> Callable[..., Any]:
        # The autograd graph of the capture is no longer needed; it would keep its saved tensors alive.
        outputs = tuple(value.detach() for value in self.outputs)
        static = _Static(self, outputs)
        inputs_spec, outputs_spec, parameters = self.inputs_spec, self.outputs_spec, self.parameters

        def graphed(*args: Any) -> Any:
            flat, spec = torch.utils._pytree.tree_flatten(args)
            if spec != inputs_spec:
                raise RuntimeError(
                    "A graphed callable was called with arguments of another structure than its sample_args."
                )
            results = _Graphed.apply(static, *flat, *parameters)
            return torch.utils._pytree.tree_unflatten(results, outputs_spec)

        if not self.is_module:
            return graphed
        module, captured_mode, eager_forward = self.call, self.call.training, self.call.forward

        def forward(*args: Any) -> Any:
            return graphed(*args) if module.training == captured_mode else eager_forward(*args)

        module.forward = forward
        return module


def _grad_outputs(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    return [torch.ones_like(value) if value.requires_grad else None for value in outputs]


class _Static:
    """The graphs of one callable and the tensors that their replays read and write."""

    def __init__(self, plan: _Plan, outputs: tuple[torch.Tensor, ...]) -> None:
        self.inputs = plan.inputs
        self.outputs = outputs
        self.differentiable = [value.requires_grad for value in plan.outputs]
        self.grad_outputs = plan.grad_outputs
        self.grad_inputs = plan.grad_inputs
        self.forward_graph = plan.forward_graph
        self.backward_graph = plan.backward_graph


class _Graphed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, static: _Static, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.static = static
        for place, value in zip(static.inputs, values):
            _copy_if_elsewhere(place, value)
        static.forward_graph.replay()
        results = tuple(value.detach() for value in static.outputs)
        ctx.mark_non_differentiable(*(r for r, needed in zip(results, static.differentiable) if not needed))
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        static = ctx.static
        for place, value in zip(static.grad_outputs, gradients):
            if place is not None:
                _copy_if_elsewhere(place, value)
        if static.backward_graph is not None:
            static.backward_graph.replay()
        return None, *(None if value is None else value.detach() for value in static.grad_inputs)


def _copy_if_elsewhere(static: torch.Tensor, value: Any) -> None:
    # A caller that writes into the static tensors itself avoids the copy.
    if value.shape != static.shape or value.dtype != static.dtype:
        raise RuntimeError(
            f"A graphed callable was captured with {static.dtype}{tuple(static.shape)} and called with "
            f"{value.dtype}{tuple(value.shape)}. Fix: make another graphed callable for this shape."
        )
    if value.data_ptr() != static.data_ptr():
        static.detach().copy_(value)


# The name in programs in which only "cuda" was replaced by "musa"; not in __all__.
CUDAGraph = MUSAGraph

__all__ = [
    "MUSAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]
