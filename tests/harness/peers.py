# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A second process that calls functions for tests: one start of the interpreter serves many tests."""

from __future__ import annotations

import gc
import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch import multiprocessing

_PATIENCE = 120.0  # seconds


class PeerError(Exception):
    """A function raised an exception in the peer; `name` is the exception's type."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class Peer:
    """A spawned process that runs functions of importable modules, one after the other."""

    def __init__(self, **environment: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        try:
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, function: Callable, *arguments: Any) -> Any:
        """Returns the function's result, or raises PeerError. Objects in its `kept` outlive the call."""
        self._pipe.send((function, arguments))
        del arguments
        return self.answer()

    def answer(self) -> Any:
        if not self._pipe.poll(_PATIENCE):
            raise TimeoutError("the peer does not answer")
        good, result = self._pipe.recv()
        if not good:
            raise PeerError(*result)
        return result

    def send_raw(self, data: bytes) -> None:
        """Sends pickled bytes instead of a call."""
        self._pipe.send_bytes(data)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._process.join()

    def close(self) -> int:
        """Ends the peer in the ordinary way, and returns its exit status."""
        if self._process.is_alive():
            self._pipe.send(None)
        self._process.join(_PATIENCE)
        self._pipe.close()
        return self._process.exitcode


kept: dict[str, Any] = {}  # in the peer: objects that outlive one call


def _serve(pipe) -> None:
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        except Exception as error:  # noqa: BLE001 - an exception of unpickling is reported to the test
            pipe.send((False, (type(error).__name__, str(error))))
            continue
        if request is None:
            return
        function, arguments = request
        try:
            answer = (True, function(*arguments))
        except Exception as error:  # noqa: BLE001 - reported to the caller
            traceback.print_exc()
            answer = (False, (type(error).__name__, str(error)))
        # Before the answer, so that the caller finds the function's temporary objects released.
        del request, function, arguments
        gc.collect()
        try:
            pipe.send(answer)
        except Exception as error:  # noqa: BLE001 - reported instead of a result that cannot be sent
            pipe.send((False, (type(error).__name__, str(error))))
        del answer


def keep(name: str, value: Any) -> None:
    kept[name] = value


def drop() -> None:
    kept.clear()
    gc.collect()


def kept_as_list(name: str) -> list:
    return torch.as_tensor(kept[name]).detach().cpu().tolist()
