# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A second process that works on the first one's device memory."""

from __future__ import annotations

import torch

_TIMEOUT_S = 120.0


def _serve(inbox, outbox):
    while True:
        tensors = inbox.get()
        if tensors is None:
            return
        sums = []
        for tensor in tensors:
            sums.append(tensor.double().sum().item())
            tensor.add_(1)
        for index in range(torch.musa.device_count()):
            torch.musa.synchronize(index)
        # Otherwise these references would keep the sender's memory until the next message.
        del tensor, tensors
        outbox.put(sums)


class Echo:
    """A process, started at its first use, that adds one to every element of the tensors that it is sent."""

    def __init__(self) -> None:
        self._process = None

    def add_one(self, tensors: list[torch.Tensor]) -> list[float]:
        """Sums of the tensors as read by the other process, which then adds one to each element."""
        self._start()
        for index in {tensor.device.index for tensor in tensors}:
            torch.musa.synchronize(index)
        self._inbox.put(tensors)
        return self._outbox.get(timeout=_TIMEOUT_S)

    def _start(self) -> None:
        if self._process is not None and self._process.is_alive():
            return
        context = torch.multiprocessing.get_context("spawn")
        self._inbox, self._outbox = context.Queue(), context.Queue()
        self._process = context.Process(target=_serve, args=(self._inbox, self._outbox), daemon=True)
        self._process.start()

    def close(self) -> None:
        """End the process; the next use starts another."""
        if self._process is None:
            return
        self._inbox.put(None)
        self._process.join(_TIMEOUT_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        for queue in (self._inbox, self._outbox):
            queue.close()
            queue.join_thread()
        self._process = None
