# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`mode="reduce-overhead"`: captures the call of a generated module into a MUSAGraph on its third run, and
replays it afterwards.

torch's CUDA graph trees support only torch's own devices. Here each compiled graph has its own MUSAGraph:
inputs with constant addresses are read in place, others are copied, and outputs are copied out, so that
results remain valid as in eager mode.
"""

import logging

import torch

_log = logging.getLogger(__name__)
_WARM_UPS = 2  # runs before the capture
_MOVES = 8  # number of changed input addresses after which graphs are disabled


class GraphedCall:
    """A callable that replaces `call` of a generated module.

    Args:
        call (callable): takes a list of inputs, which it clears, and returns a tuple of outputs.
        mutated (sequence of int): positions of inputs that `call` writes to.
        reads_host (bool): whether `call` reads or computes tensors in host memory. A graph does not record
            this, so each replay would have the values of the capture.

    Attributes:
        reason (str or None): the reason why it is not captured.
        entries (dict): state per set of symbolic sizes.
    """

    def __init__(self, call, mutated=(), reads_host=False):
        self.call, self.mutated, self.reads_host = call, frozenset(mutated), reads_host
        self.reason = None
        self.entries = {}

    def __call__(self, inputs):
        if self.reason is not None or torch.musa.is_current_stream_capturing():
            return self.call(inputs)
        sizes = tuple(value for value in inputs if not isinstance(value, torch.Tensor))
        entry = self.entries.setdefault(sizes, _Entry())
        if entry.graph is not None:
            return self._replay(entry, inputs)
        if entry.runs < _WARM_UPS:
            entry.note(inputs)
            return self.call(inputs)
        return self._capture(entry, inputs)

    def _give_up(self, reason, inputs):
        self.reason = reason
        self.entries.clear()
        _log.warning("torch.compile does not capture a function into a MUSAGraph: %s", reason)
        return self.call(inputs)

    def _capture(self, entry, inputs):
        if self.reads_host:
            return self._give_up("it reads or computes tensors in host memory", inputs)
        tensors = {at: value for at, value in enumerate(inputs) if isinstance(value, torch.Tensor)}
        moving = sorted(entry.moving & tensors.keys())
        if self.mutated.intersection(moving):
            return self._give_up("it writes to an input that is not always at the same address", inputs)
        fixed = list(inputs)
        for at in moving:
            fixed[at] = torch.empty_strided(
                inputs[at].size(), inputs[at].stride(), dtype=inputs[at].dtype, device=inputs[at].device
            )
            fixed[at].copy_(inputs[at])
        graph = torch.musa.MUSAGraph()
        try:
            with torch.musa.graph(graph):
                outputs = self.call(list(fixed))
        except RuntimeError as error:
            return self._give_up(f"it cannot be captured: {error}", inputs)
        reason = entry.take(graph, inputs, fixed, outputs, moving)
        if reason is not None:
            return self._give_up(reason, inputs)
        return self._replay(entry, inputs)

    def _replay(self, entry, inputs):
        for at, address in entry.addresses:
            if inputs[at].data_ptr() != address:
                entry.moves += 1
                if entry.moves > _MOVES:
                    return self._give_up("its inputs do not stay at their addresses", inputs)
                entry.moving.add(at)
                entry.graph = None
                return self.call(inputs)
        for at, copy in entry.copies:
            copy.copy_(inputs[at])
        handed_on = {output: inputs[at] for output, at in entry.handed_on.items()}
        inputs.clear()
        entry.graph.replay()
        return tuple(
            handed_on[at] if at in handed_on else value.clone() if isinstance(value, torch.Tensor) else value
            for at, value in enumerate(entry.outputs)
        )


class _Entry:
    """Inputs and graph for one set of symbolic sizes."""

    def __init__(self):
        self.runs = self.moves = 0
        self.graph = self.seen = None
        self.moving = set()  # positions of inputs whose addresses changed between runs

    def note(self, inputs):
        """Compares the addresses of the inputs with those of the previous run."""
        now = [value.data_ptr() if isinstance(value, torch.Tensor) else None for value in inputs]
        if self.seen is not None:
            self.moving.update(at for at, (before, new) in enumerate(zip(self.seen, now)) if before != new)
        self.seen = now
        self.runs += 1

    def take(self, graph, inputs, fixed, outputs, moving):
        """Stores the captured graph.

        Returns:
            str or None: the reason if it cannot be replayed.
        """
        tensors = [(at, value) for at, value in enumerate(outputs) if isinstance(value, torch.Tensor)]
        # Inputs that are returned unchanged, for example because the backward graph reads them, are
        # returned as the caller passed them.
        self.handed_on = {
            output: at for output, value in tensors for at, own in enumerate(fixed) if value is own
        }
        memory = {own.untyped_storage().data_ptr() for own in fixed if isinstance(own, torch.Tensor)}
        for output, value in tensors:
            if output not in self.handed_on and value.untyped_storage().data_ptr() in memory:
                return "an output is a view of an input"
        self.copies = [(at, fixed[at]) for at in moving]
        self.addresses = [
            (at, value.data_ptr())
            for at, value in enumerate(inputs)
            if isinstance(value, torch.Tensor) and at not in moving
        ]
        self.outputs, self.graph = outputs, graph
        return None
