# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The module that an operator belongs to, in forward and backward passes."""

import dataclasses
import threading
import weakref
from typing import NamedTuple

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

_KEY = "torch_musa.debug.module"


class _Running(NamedTuple):
    """A module whose forward pass runs."""

    module: torch.nn.Module
    name: str
    node: object  # the autograd node that ran when the forward pass began; None outside of backward passes


class ModuleNames:
    """Keeps, for each thread, the stack of modules whose forward passes run, and names autograd nodes.

    A module's name is that of `named_modules()` of the outermost running module, after the name of that
    module's class. When a module is left, the nodes that it made get its name in their metadata, from which
    backward passes take it.
    """

    def __init__(self):
        self._stacks = threading.local()
        self._names = weakref.WeakKeyDictionary()
        self._handles = []

    def start(self):
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self):
        for handle in self._handles:
            handle.remove()

    def current(self):
        """Module, phase and name of the autograd node of what this thread runs now."""
        node = torch._C._current_autograd_node()
        stack = self._stack()
        if node is None:
            return stack[-1].name if stack else "", "forward", ""
        if stack and stack[-1].node is node:  # the node runs a forward pass: checkpointing does
            return stack[-1].name, "recompute", node.name()
        return node.metadata.get(_KEY, ""), "backward", node.name()

    def _stack(self):
        try:
            return self._stacks.modules
        except AttributeError:
            self._stacks.modules = []
            return self._stacks.modules

    def _enter(self, module, arguments):
        stack = self._stack()
        around = stack[-1].name if stack else ""
        _name_nodes(arguments, around)
        # Checkpointing calls parts of a module that have their names already.
        if not stack and module not in self._names:
            root = type(module).__name__
            for name, part in module.named_modules():
                self._names[part] = f"{root}.{name}" if name else root
        name = self._names.get(module) or f"{around}.{type(module).__name__}"
        stack.append(_Running(module, name, torch._C._current_autograd_node()))

    def _leave(self, module, arguments, result):
        stack = self._stack()
        place = next((i for i in reversed(range(len(stack))) if stack[i].module is module), None)
        if place is None:  # it was running already when the mode was entered
            return
        name = stack[place].name
        del stack[place:]  # with modules above it, whose hooks an exception skipped
        _name_nodes(result, name)


def _name_nodes(value, name):
    """Gives the name to the nodes that lead to the tensors of a value and have no name yet."""
    pending = [tensor.grad_fn for tensor in _tensors(value) if tensor.grad_fn is not None]
    while pending:
        node = pending.pop()
        metadata = node.metadata
        if _KEY in metadata:
            continue
        metadata[_KEY] = name
        pending += [before for before, _ in node.next_functions if before is not None]


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _tensors(vars(value))
