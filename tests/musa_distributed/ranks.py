# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Rank processes that run functions of test modules. They last for the session, as a start takes seconds."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

PATIENCE = 120  # seconds for one function


def _live(rank: int, size: int, meeting: str, pipe: Connection) -> None:
    """The main function of a rank: joins the group, then calls the received functions until it gets None."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    device = torch.device("musa", rank)
    torch.musa.set_device(device)
    dist.init_process_group("cpu:gloo,musa:mccl", init_method=f"file://{meeting}", rank=rank, world_size=size)
    pipe.send(None)
    while (order := pipe.recv()) is not None:
        module, name, arguments = order
        try:
            result = getattr(importlib.import_module(module), name)(*arguments)
            answer = (True, result)
        except Exception:  # noqa: BLE001 - the test reports it
            answer = (False, traceback.format_exc())
        pipe.send(answer)
    dist.destroy_process_group()


class Ranks:
    """Processes of one default group, each on its own device, with the backends gloo and mccl."""

    def __init__(self, size: int, folder: Path) -> None:
        self.size = size
        self._folder = folder
        self._starts = 0
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._pipes: list[Connection] = []

    def run(self, function: Callable, *arguments: object) -> list:
        """Calls a module's function in every rank; returns the results by rank. Fails with their errors."""
        if not self._processes:
            self._start()
        for pipe in self._pipes:
            pipe.send((function.__module__, function.__name__, arguments))
        answers = [self._answer(pipe) for pipe in self._pipes]
        failures = [f"rank {rank}:\n{text}" for rank, (fine, text) in enumerate(answers) if not fine]
        if failures:
            self.stop(kill=True)  # the others may wait for the rank that raised
            raise AssertionError("\n".join(failures))
        return [result for _, result in answers]

    def _answer(self, pipe: Connection) -> tuple[bool, object]:
        try:
            return pipe.recv() if pipe.poll(PATIENCE) else (False, f"no answer within {PATIENCE} s")
        except EOFError:
            return False, "the process has ended"

    def _start(self) -> None:
        self._starts += 1
        meeting = str(self._folder / f"meeting{self._starts}")
        context = multiprocessing.get_context("spawn")
        with _environment(MUSA_EMULATOR_DEVICES=str(self.size), OMP_NUM_THREADS="1"):
            for rank in range(self.size):
                ours, theirs = context.Pipe()
                process = context.Process(target=_live, args=(rank, self.size, meeting, theirs), daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                self._pipes.append(ours)
        for rank, pipe in enumerate(self._pipes):
            if not pipe.poll(PATIENCE):
                self.stop(kill=True)
                raise AssertionError(f"rank {rank} of {self.size} did not join")
            pipe.recv()

    def stop(self, kill: bool = False) -> None:
        for pipe in self._pipes:
            if not kill:
                pipe.send(None)
        for process in self._processes:
            if kill:
                process.kill()
            process.join(PATIENCE)
        statuses = [process.exitcode for process in self._processes]
        self._processes, self._pipes = [], []
        assert kill or statuses == [0] * len(statuses), f"ranks ended with {statuses}"


@contextlib.contextmanager
def _environment(**values: str):
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
