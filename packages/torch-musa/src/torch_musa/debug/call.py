# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""One call of an operator."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICE = "musa"

# Operators with a result that is partly or entirely uninitialized memory.
_UNINITIALISED = frozenset(
    ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
     "resize_as_", "set_")
)  # fmt: skip
# Operators that overwrite a tensor without reading it.
_OVERWRITING = frozenset(
    ("copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_",
     "cauchy_", "log_normal_", "_foreach_copy_", "_foreach_zero_")
)  # fmt: skip


class OperatorCall:
    """A call of an operator.

    Attributes:
        index (int): number of the call in the `with` block, from 0.
        func (OpOverload), args (tuple), kwargs (dict): the call, with the program's own tensors.
        module (str): qualified name of the module that made the call, or whose backward pass did; "" outside
            modules. Its first part is the class of the outermost module.
        phase (str): "forward", "backward", or "recompute" for a forward pass within a backward pass.
        node (str): name of the running autograd node; "" in a forward pass.
        start, seconds (float): start time since the mode was entered, and duration, in seconds. The device is
            idle at both ends.
        provider (str): provider whose kernel ran, with the operator's name if it differs; "" if unknown.
        result: the operator's return value.
        error (Exception): the exception that it raised; None if it returned.
        thread (int): the calling thread.
    """

    def __init__(
        self,
        index: int,
        func: torch._ops.OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        module: str = "",
        phase: str = "forward",
        node: str = "",
    ) -> None:
        self.index, self.func, self.args, self.kwargs = index, func, args, kwargs
        self.module, self.phase, self.node = module, phase, node
        self.start = self.seconds = 0.0
        self.provider = ""
        self.result: Any = None
        self.error: BaseException | None = None
        self.thread = threading.get_ident()

    @property
    def name(self) -> str:
        """The operator's name as in `torch.musa.ops`: "aten::add.Tensor"."""
        return _name(self.func)

    @property
    def base_name(self) -> str:
        """The operator's name without namespace and overload: "add"."""
        return self.func._opname

    @functools.cached_property
    def named_arguments(self) -> list[tuple[str, Any]]:
        """(name, value) pairs of the arguments that the call passes."""
        arguments = self.func._schema.arguments
        positional = [(argument.name, value) for argument, value in zip(arguments, self.args)]
        return positional + list(self.kwargs.items())

    @functools.cached_property
    def inputs(self) -> list[tuple[str, torch.Tensor]]:
        """(name, tensor) pairs of all tensor arguments; tensor lists are expanded."""
        return [pair for name, value in self.named_arguments for pair in tensors_of(name, value)]

    @functools.cached_property
    def written(self) -> list[tuple[str, torch.Tensor]]:
        """The pairs of `inputs` that the operator writes according to its schema."""
        names = _written_names(self.func)
        if not names:
            return []
        given = [(name, value) for name, value in self.named_arguments if name in names]
        return [pair for name, value in given for pair in tensors_of(name, value)]

    @property
    def read(self) -> list[tuple[str, torch.Tensor]]:
        """The pairs of `inputs` that the result depends on."""
        ignored = {argument.name for argument in self.func._schema.arguments if argument.is_out}
        if self.base_name in _OVERWRITING:
            ignored |= _written_names(self.func)
        given = [(name, value) for name, value in self.named_arguments if name not in ignored]
        return [pair for name, value in given for pair in tensors_of(name, value)]

    @property
    def outputs(self) -> list[tuple[str, torch.Tensor]]:
        """(name, tensor) pairs: results, then written arguments that are not results."""
        pairs = list(tensors_of("result", self.result))
        returned = {id(tensor) for _, tensor in pairs}
        return pairs + [(name, tensor) for name, tensor in self.written if id(tensor) not in returned]

    @functools.cached_property
    def on_device(self) -> bool:
        """Whether an argument is a musa tensor or the musa device."""
        if any(tensor.device.type == DEVICE for _, tensor in self.inputs):
            return True
        return any(
            isinstance(value, torch.device) and value.type == DEVICE for _, value in self.named_arguments
        )

    @property
    def is_view(self) -> bool:
        return self.func.is_view

    @property
    def is_random(self) -> bool:
        if torch.Tag.nondeterministic_seeded not in self.func.tags:
            return False
        # Attention draws random numbers only for dropout.
        if any(argument.name == "dropout_p" for argument in self.func._schema.arguments):
            return bool(dict(self.named_arguments).get("dropout_p", 0.0))
        return True

    @property
    def is_uninitialised(self) -> bool:
        return self.base_name in _UNINITIALISED

    @property
    def is_collective(self) -> bool:
        return "c10d" in self.func.namespace or self.func.namespace == "symm_mem"

    def where(self) -> str:
        """The operator and its module, for messages."""
        place = f" in {self.module}" if self.module else " outside of modules"
        return f"{self.name}{place} ({self.phase}, call {self.index})"


@functools.cache
def _name(func: torch._ops.OpOverload) -> str:
    schema = func._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


@functools.cache
def _written_names(func: torch._ops.OpOverload) -> frozenset[str]:
    return frozenset(
        argument.name
        for argument in func._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def tensors_of(name: str, value: object) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields (name, tensor) pairs of a value: a tensor, a list of tensors, or neither."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensors_of(f"{name}[{index}]", item)


def describe(value: object) -> str:
    """Returns a value as short text: tensors as dtype and shape, and strides unless contiguous."""
    if isinstance(value, torch.Tensor):
        text = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if value.layout is not torch.strided:
            return f"{text} {str(value.layout).removeprefix('torch.')}"
        if not value.is_contiguous():
            text += f" strides {list(value.stride())}"
        return text if value.device.type == DEVICE else f"{text} on {value.device}"
    if isinstance(value, (list, tuple)):
        shown = ", ".join(describe(item) for item in value[:4])
        return f"[{shown}, ... {len(value)} in all]" if len(value) > 4 else f"[{shown}]"
    text = str(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
